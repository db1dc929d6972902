//! In-memory Redis-protocol test double.
