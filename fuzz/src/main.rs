//! The hunt for lost updates.
fn main() {}
