//! What took longer than `latency-monitor-threshold`, by kind of event (latency.c).

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

/// Samples that are kept of an event.
const SAMPLES_MAX: usize = 160;
/// Width of a graph and height of its lines.
const GRAPH_COLUMNS: usize = 80;
const GRAPH_ROWS: usize = 4;
/// What a column ends with at the top, by thirds of a row.
const STEPS: [char; 3] = ['_', 'o', '#'];

/// A spike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Seconds since the epoch.
    pub at: i64,
    /// Milliseconds that it took.
    pub millis: i64,
}

/// The spikes of one event, at most one a second.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    samples: VecDeque<Sample>,
    /// The worst there ever was, in milliseconds.
    pub worst: i64,
}

/// All spikes, by event.
#[derive(Debug, Default)]
pub(crate) struct LatencyEvents(BTreeMap<&'static str, Series>);

impl LatencyEvents {
    /// Notes a spike; of several in one second the worst counts.
    pub(crate) fn add(&mut self, event: &'static str, sample: Sample) {
        let series = self.0.entry(event).or_default();
        series.worst = series.worst.max(sample.millis);
        if let Some(last) = series.samples.back_mut()
            && last.at == sample.at
        {
            last.millis = last.millis.max(sample.millis);
            return;
        }
        if series.samples.len() == SAMPLES_MAX {
            series.samples.pop_front();
        }
        series.samples.push_back(sample);
    }

    /// All events with their spikes.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&'static str, &Series)> {
        self.0.iter().map(|(event, series)| (*event, series))
    }

    /// The spikes of an event, whose name may be in any case.
    pub(crate) fn get(&self, event: &[u8]) -> Option<&Series> {
        let event = std::str::from_utf8(event).ok()?;
        self.0.get(event)
    }

    /// Forgets an event; whether there was one.
    pub(crate) fn remove(&mut self, event: &[u8]) -> bool {
        std::str::from_utf8(event).is_ok_and(|event| self.0.remove(event).is_some())
    }

    /// Forgets all; how many events there were.
    pub(crate) fn clear(&mut self) -> usize {
        std::mem::take(&mut self.0).len()
    }
}

impl Series {
    /// The spikes, the oldest first.
    pub(crate) fn samples(&self) -> impl ExactSizeIterator<Item = &Sample> {
        self.samples.iter()
    }

    /// The last spike.
    pub(crate) fn last(&self) -> Option<&Sample> {
        self.samples.back()
    }

    /// Number, mean, mean deviation and period of the spikes, as `LATENCY DOCTOR` tells them.
    pub(crate) fn summary(&self, now: i64) -> String {
        let len = self.samples.len().max(1) as i64;
        let mean = self.samples().map(|sample| sample.millis).sum::<i64>() / len;
        let deviations = self.samples().map(|sample| (mean - sample.millis).abs());
        let deviation = deviations.sum::<i64>() / len;
        let first = self.samples().map(|sample| sample.at).min().unwrap_or(now);
        let period = (now - first).max(1) as f64 / len as f64;
        format!(
            "{len} latency spikes (average {mean}ms, mean deviation {deviation}ms, period {period:.2} sec). Worst all time \
             event {}ms.",
            self.worst
        )
    }

    /// The spikes as columns of text, each with how long ago it was written below it from top to bottom.
    pub(crate) fn graph(&self, event: &str, now: i64) -> String {
        let millis = || self.samples().map(|sample| sample.millis);
        let (high, low) = (millis().max().unwrap_or(0), millis().min().unwrap_or(0));
        let mut text = format!(
            "{event} - high {high} ms, low {low} ms (all time high {} ms)\n{}\n",
            self.worst,
            "-".repeat(GRAPH_COLUMNS)
        );
        let samples: Vec<Sample> = self.samples.iter().copied().collect();
        for (at, part) in samples.chunks(GRAPH_COLUMNS).enumerate() {
            if at > 0 {
                text.push('\n');
            }
            let columns: Vec<_> = part
                .iter()
                .map(|sample| column(*sample, low, high, now))
                .collect();
            let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
            for row in 0..rows {
                let line = columns.iter().map(|column| column.get(row).unwrap_or(&' '));
                text.extend(line);
                // Writing to a string cannot fail.
                let _ = writeln!(text);
            }
        }
        text
    }
}

/// A column of a graph from top to bottom: the bar, a blank, how long ago it was.
fn column(sample: Sample, low: i64, high: i64, now: i64) -> Vec<char> {
    let steps = STEPS.len() * GRAPH_ROWS;
    let range = (high - low).max(1) as f64;
    let step = ((sample.millis - low) as f64 * steps as f64 / range) as usize;
    let step = step.min(steps - 1);
    let bar = (0..GRAPH_ROWS).map(|row| {
        let below = (GRAPH_ROWS - row - 1) * STEPS.len();
        match step.checked_sub(below) {
            None => ' ',
            Some(rest) => STEPS.get(rest).copied().unwrap_or('|'),
        }
    });
    let label = match now - sample.at {
        seconds @ ..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86400),
    };
    bar.chain([' ']).chain(label.chars()).collect()
}
