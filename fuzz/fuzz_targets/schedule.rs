//! Bytes to workload, faults and schedule: `cargo fuzz run --features libfuzzer -s none schedule`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(found) = fuzz::bytes::run(bytes) {
        panic!("{found}");
    }
});
