//! [`Cost`]: processor time of this thread, and time on the wall.

use std::fs;
use std::time::Instant;

/// Seconds of something.
#[derive(Debug)]
pub(crate) struct Cost {
    pub(crate) processor_s: f64,
    pub(crate) wall_s: f64,
}

/// What it costs to do it.
pub(crate) fn of(work: impl FnOnce()) -> Cost {
    let (processor_s, start) = (processor_s(), Instant::now());
    work();
    Cost {
        wall_s: start.elapsed().as_secs_f64(),
        processor_s: self::processor_s() - processor_s,
    }
}

/// What this thread has used so far. Linux counts it in nanoseconds here, unlike in `stat`.
fn processor_s() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel that counts");
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse().ok());
    nanoseconds.map_or(0.0, |ns: f64| ns / 1e9)
}
