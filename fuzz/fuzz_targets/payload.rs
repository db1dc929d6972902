//! Bytes as the payload of RESTORE: `cargo fuzz run --features libfuzzer -s none payload`.

#![no_main]

use fuzz::target::Target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(found) = Target::Payload.run(bytes) {
        panic!("{found}");
    }
});
