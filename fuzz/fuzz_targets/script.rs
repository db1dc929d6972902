//! Bytes as the source of a script: `cargo fuzz run --features libfuzzer -s none script`.

#![no_main]

use fuzz::target::Target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(found) = Target::Script.run(bytes) {
        panic!("{found}");
    }
});
