//! Bytes as what a client sends: `cargo fuzz run --features libfuzzer -s none requests`.

#![no_main]

use fuzz::target::Target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(found) = Target::Requests.run(bytes) {
        panic!("{found}");
    }
});
