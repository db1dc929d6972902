//! Rows, as a table and for machines, and what they were before.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use crate::options::Options;
use crate::process::quantile;

/// A row may be worse than its baseline by this factor.
const TOLERANCE: f64 = 2.0 / 3.0;

/// Median and range of the rounds.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) middle: f64,
    pub(crate) most: f64,
}

impl Spread {
    pub(crate) fn of(mut values: Vec<f64>) -> Spread {
        Spread {
            least: percentile(&mut values, 0),
            middle: percentile(&mut values, 50),
            most: percentile(&mut values, 100),
        }
    }

    fn json(self) -> Value {
        json!({ "least": self.least, "median": self.middle, "most": self.most })
    }
}

/// The value that so many of a hundred do not exceed.
pub(crate) fn percentile(values: &mut [f64], percent: usize) -> f64 {
    quantile(values, percent as f64 / 100.0)
}

/// What a row's figure should be.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
    None,
}

/// One line of the table.
pub(crate) struct Row {
    name: String,
    pub(crate) figure: Spread,
    goal: Goal,
    /// The other peers' figures, by the same measure.
    pub(crate) peers: Vec<(&'static str, Spread)>,
    pub(crate) note: String,
    /// Whether it is by more than a third worse than it was.
    pub(crate) is_fallen: bool,
}

impl Row {
    pub(crate) fn new(name: &str, figure: Spread, goal: Goal) -> Row {
        Row {
            name: name.to_owned(),
            figure,
            goal,
            peers: Vec::new(),
            note: String::new(),
            is_fallen: false,
        }
    }

    /// Nothing if there is no goal.
    fn is_met(&self) -> Option<bool> {
        match self.goal {
            Goal::AtLeast(least) => Some(self.figure.middle >= least),
            Goal::AtMost(most) => Some(self.figure.middle <= most),
            Goal::None => None,
        }
    }

    pub(crate) fn is_worse_than(&self, figure: f64) -> bool {
        match self.goal {
            Goal::AtMost(_) => self.figure.middle > figure,
            Goal::AtLeast(_) | Goal::None => self.figure.middle < figure,
        }
    }

    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let Spread {
            least,
            middle,
            most,
        } = self.figure;
        let range = format!("({least:.2}-{most:.2})");
        let goal = match self.goal {
            Goal::AtLeast(least) => format!(">= {least:.2}"),
            Goal::AtMost(most) => format!("<= {most:.2}"),
            Goal::None => "-".to_owned(),
        };
        let verdict = match (self.is_fallen, self.is_met()) {
            (true, _) => "FALLEN",
            (_, Some(true)) => "met",
            (_, Some(false)) => "NOT MET",
            (_, None) => "",
        };
        write!(
            out,
            "{:<38} {middle:>8.2} {range:<17} {goal:<9} {verdict:<8} {}",
            self.name, self.note
        )?;
        for (name, figure) in &self.peers {
            write!(out, "; {name} {:.2}", figure.middle)?;
        }
        writeln!(out)
    }

    fn json(&self) -> Value {
        let (least, most) = match self.goal {
            Goal::AtLeast(goal) => (Some(goal), None),
            Goal::AtMost(goal) => (None, Some(goal)),
            Goal::None => (None, None),
        };
        let peers: BTreeMap<_, _> = self
            .peers
            .iter()
            .map(|(name, figure)| (*name, figure.json()))
            .collect();
        json!({
            "name": self.name, "figure": self.figure.json(), "goal_at_least": least, "goal_at_most": most,
            "met": self.is_met(), "fallen": self.is_fallen, "peers": peers, "note": self.note,
        })
    }
}

pub(crate) fn print_head(options: &Options, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "redis-server's figure / ours unless a unit is named; processor time of the server but for starts and memory\n\
         {:<38} {:>8} {:<17} {:<9} {:<8} redis-server / fakeserver; other peers' ratio",
        format!("median of {} rounds", options.rounds),
        "ratio",
        "(least-most)",
        "goal",
        ""
    )
}

pub(crate) fn write_json(options: &Options, rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    let rows: Vec<Value> = rows.iter().map(Row::json).collect();
    let report = json!({ "smoke": options.smoke, "rounds": options.rounds, "rows": rows });
    let path = &options.json;
    std::fs::write(path, format!("{report:#}\n"))
        .map_err(|error| io::Error::other(format!("cannot write {}: {error}", path.display())))?;
    writeln!(out, "for machines: {}", path.display())
}

/// What the rows were when they were last recorded.
pub(crate) struct Baseline(BTreeMap<String, f64>);

impl Baseline {
    pub(crate) fn read() -> io::Result<Baseline> {
        Ok(Baseline(serde_json::from_str(include_str!(
            "baseline.json"
        ))?))
    }

    /// A row without a baseline cannot fall. Starts have none: their times are the clock's, and swing with the machine.
    pub(crate) fn is_fallen(&self, row: &Row) -> bool {
        self.0.get(&row.name).is_some_and(|&before| match row.goal {
            Goal::AtMost(_) => row.is_worse_than(before / TOLERANCE),
            Goal::AtLeast(_) | Goal::None => row.is_worse_than(before * TOLERANCE),
        })
    }
}
