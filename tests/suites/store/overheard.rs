//! Everything that a piece of work tells in spans, events and metrics, as lines of text.

use std::{
    fmt::{self, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// What was told so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overheard {
    lines: Arc<Mutex<Vec<String>>>,
    spans: Arc<AtomicU64>,
}

/// Does this work and answers with what it told.
pub(crate) fn overhear(work: impl FnOnce()) -> Vec<String> {
    let overheard = Overheard::default();
    metrics::with_local_recorder(&overheard, || {
        tracing::subscriber::with_default(overheard.clone(), work);
    });
    overheard.lines()
}

/// The lines that are about this: a metric, or spans and events.
pub(crate) fn about<'l>(lines: &'l [String], what: &str) -> Vec<&'l str> {
    let lines = lines.iter().map(String::as_str);
    lines.filter(|line| line.starts_with(what)).collect()
}

impl Overheard {
    fn lines(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.clone()
    }

    fn note(&self, line: String) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(line);
    }

    fn figure(&self, key: &Key) -> Arc<Figure> {
        let mut name = key.name().to_owned();
        for label in key.labels() {
            write!(name, " {}={}", label.key(), label.value()).unwrap();
        }
        Arc::new(Figure {
            overheard: self.clone(),
            name,
        })
    }
}

/// A metric with its labels.
struct Figure {
    overheard: Overheard,
    name: String,
}

impl Figure {
    fn note(&self, value: impl fmt::Display) {
        self.overheard.note(format!("{}: {value}", self.name));
    }
}

impl CounterFn for Figure {
    fn increment(&self, value: u64) {
        self.note(value);
    }

    fn absolute(&self, value: u64) {
        self.note(value);
    }
}

impl GaugeFn for Figure {
    fn increment(&self, value: f64) {
        self.note(value);
    }

    fn decrement(&self, value: f64) {
        self.note(-value);
    }

    fn set(&self, value: f64) {
        self.note(value);
    }
}

impl HistogramFn for Figure {
    fn record(&self, value: f64) {
        self.note(value);
    }
}

impl Recorder for Overheard {
    fn describe_counter(&self, key: KeyName, _: Option<Unit>, words: SharedString) {
        self.note(format!("{}: {words}", key.as_str()));
    }

    fn describe_gauge(&self, key: KeyName, _: Option<Unit>, words: SharedString) {
        self.note(format!("{}: {words}", key.as_str()));
    }

    fn describe_histogram(&self, key: KeyName, _: Option<Unit>, words: SharedString) {
        self.note(format!("{}: {words}", key.as_str()));
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.figure(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.figure(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.figure(key))
    }
}

/// Fields, as they are printed.
struct Fields(String);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        write!(self.0, " {}={value}", field.name()).unwrap();
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Overheard {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let id = self.spans.fetch_add(1, Ordering::Relaxed) + 1;
        let mut fields = Fields(format!("span {}", attributes.metadata().name()));
        attributes.record(&mut fields);
        self.note(fields.0);
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut fields = Fields("span".to_owned());
        values.record(&mut fields);
        self.note(fields.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(format!("event {}", event.metadata().level()));
        event.record(&mut fields);
        self.note(fields.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
