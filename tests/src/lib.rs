//! Harness of the suites.
