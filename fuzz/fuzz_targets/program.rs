//! Bytes as commands of the table: `cargo fuzz run --features libfuzzer -s none program`.

#![no_main]

use fuzz::target::Target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(found) = Target::Program.run(bytes) {
        panic!("{found}");
    }
});
