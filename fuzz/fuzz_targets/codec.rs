//! Bytes as what cjson, cmsgpack and struct read: `cargo fuzz run --features libfuzzer -s none codec`.

#![no_main]

use fuzz::target::Target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(found) = Target::Codec.run(bytes) {
        panic!("{found}");
    }
});
