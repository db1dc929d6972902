//! What the hunt prints.

use std::fmt::{self, Write as _};

use crate::live::Trampled;
use crate::runner::{Control, Hunted};

/// A table of texts, its columns as wide as they must be.
struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(titles: &[&str]) -> Table {
        let titles = titles.iter().map(|title| (*title).to_owned()).collect();
        Table { rows: vec![titles] }
    }

    fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                let is_number = cell.bytes().all(|byte| byte.is_ascii_digit());
                if is_number {
                    write!(line, "{cell:>width$}  ")?;
                } else {
                    write!(line, "{cell:<width$}  ")?;
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// The scenarios on the embedded server.
pub fn hunted(hunted: &[Hunted]) -> String {
    let titles = [
        "scenario",
        "clients",
        "schedules",
        "coverage",
        "by",
        "faults",
        "violations",
    ];
    let mut table = Table::new(&titles);
    for one in hunted {
        table.row(vec![
            one.scenario.name().to_owned(),
            one.clients.to_string(),
            one.schedules.to_string(),
            one.coverage.to_string(),
            one.by.to_owned(),
            one.faults.to_string(),
            usize::from(one.counterexample.is_some()).to_string(),
        ]);
    }
    table.to_string()
}

/// The scenarios on a real server.
pub fn trampled(trampled: &[Trampled]) -> String {
    let titles = [
        "scenario",
        "clients",
        "runs",
        "commits",
        "conflicts",
        "coverage",
        "violations",
    ];
    let mut table = Table::new(&titles);
    for one in trampled {
        table.row(vec![
            one.scenario.name().to_owned(),
            one.clients.to_string(),
            one.runs.to_string(),
            one.landed.to_string(),
            one.conflicts.to_string(),
            "sampled".to_owned(),
            usize::from(one.violation.is_some()).to_string(),
        ]);
    }
    table.to_string()
}

/// The broken stores: what catches each, and the schedule that does. `confirmed` says for each whether it happens on a real
/// server too.
pub fn controls(controls: &[Control], confirmed: &[bool]) -> String {
    let mut titles = vec![
        "broken store",
        "caught by",
        "schedules",
        "preempt",
        "faults",
    ];
    if !confirmed.is_empty() {
        titles.push("on redis");
    }
    titles.push("replay");
    let mut table = Table::new(&titles);
    for (at, control) in controls.iter().enumerate() {
        let mut row = vec![control.flaw.name().to_owned()];
        match &control.counterexample {
            Some(found) => row.extend([
                found.violation.property.clone(),
                control.schedules.to_string(),
                found.preemptions.to_string(),
                found.faults.to_string(),
            ]),
            None => row.extend([
                "ESCAPED".to_owned(),
                control.schedules.to_string(),
                String::new(),
                String::new(),
            ]),
        }
        if let Some(confirmed) = confirmed.get(at) {
            row.push(if *confirmed { "yes" } else { "NO" }.to_owned());
        }
        let found = control.counterexample.as_ref();
        row.push(found.map_or_else(String::new, |found| found.schedule.to_string()));
        table.row(row);
    }
    table.to_string()
}
