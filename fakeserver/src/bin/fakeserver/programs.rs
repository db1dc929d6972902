//! What `fakeserver sweep` and `fakeserver explore` have in common: programs, comparison, reports, exit status.

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use fakeserver::sweep::{Compare, Report, Role, Sweep};

/// Exit status for findings, and for what could not be run.
const FOUND: u8 = 1;
const REFUSED: u8 = 2;

#[derive(Debug, Args)]
pub(crate) struct ProgramOptions {
    /// Program that fills the server before everything, in one word: it is split as a shell splits words
    #[arg(long, value_name = "COMMAND")]
    setup: Option<String>,
    /// Program that runs at the end of each run: a recovery, or a reader whose output counts
    #[arg(long, value_name = "COMMAND")]
    after: Option<String>,
    /// How closely values are compared
    #[arg(long, value_enum, default_value_t = CompareBy::Content)]
    compare: CompareBy,
    /// Whether what the programs print counts
    #[arg(long, value_enum, default_value_t = OutputRule::Compare)]
    output: OutputRule,
    /// Keys to leave out of the comparison, a glob pattern
    #[arg(long, value_name = "PATTERN")]
    ignore: Vec<String>,
    /// Fields to leave out, of keys that match
    #[arg(long, value_name = "KEYS:FIELDS", value_parser = field_pattern)]
    ignore_field: Vec<(String, String)>,
    /// Seconds that one run may take
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds)]
    time_limit: f64,
    /// Milliseconds after which a program that says nothing is taken to wait for the other one
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 1000)]
    patience: u64,
    /// Write the report as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the report as a page for a browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Do not print the report
    #[arg(long)]
    quiet: bool,
    /// Run each finding again on a real server, which must be empty
    #[arg(long, value_name = "redis://HOST:PORT")]
    confirm: Option<String>,
    /// Seed of all random choices
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Where the server's clock stands, in milliseconds since the epoch; now by default
    #[arg(long, value_name = "MILLISECONDS")]
    clock: Option<i64>,
    /// Roles that whoever started this runs (setup, a, b, after; for test frameworks), and their names
    #[arg(long, value_name = "ROLE[=NAME]", value_delimiter = ',', value_parser = hosted)]
    host: Vec<(Role, String)>,
    /// `-- A ARGUMENTS... [-- B ARGUMENTS...]`: the programs
    #[arg(last = true, value_name = "PROGRAMS")]
    programs: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CompareBy {
    /// Types and values
    Content,
    /// Types and sizes
    Shape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputRule {
    Compare,
    Ignore,
}

fn field_pattern(text: &str) -> Result<(String, String), String> {
    // Keys have colons in them, fields rarely.
    let (keys, fields) = text
        .rsplit_once(':')
        .ok_or("it has no colon between keys and fields")?;
    Ok((keys.to_owned(), fields.to_owned()))
}

pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => Ok(seconds),
        _ => Err("not a number of seconds".to_owned()),
    }
}

fn hosted(text: &str) -> Result<(Role, String), String> {
    let (role, name) = text.split_once('=').unwrap_or((text, "(hosted)"));
    let roles = [Role::Setup, Role::A, Role::B, Role::After];
    let found = roles.into_iter().find(|known| known.name() == role);
    let role = found.ok_or("the roles are setup, a, b, after")?;
    Ok((role, name.to_owned()))
}

/// The exit status of a task: whether it was clean, or why it could not be done.
pub(crate) fn ended(task: &str, result: Result<bool, impl Display>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FOUND),
        Err(problem) => {
            eprintln!("fakeserver {task}: {problem}");
            ExitCode::from(REFUSED)
        }
    }
}

impl ProgramOptions {
    /// Hands out the report; whether it is clean.
    pub(crate) fn tell(&self, report: &Report, text: &str) -> Result<bool, String> {
        self.write_report(report)?;
        if !self.host.is_empty() {
            report.tell_host(text).map_err(|error| error.to_string())?;
        } else if !self.quiet {
            print(text)?;
        }
        Ok(report.is_clean())
    }

    /// What to run and how; the programs take these roles in order.
    pub(crate) fn configured(&self, roles: &[Role]) -> Result<Sweep, String> {
        let mut sweep = Sweep::new()
            .compare(match self.compare {
                CompareBy::Content => Compare::Content,
                CompareBy::Shape => Compare::Shape,
            })
            .compare_output(self.output == OutputRule::Compare)
            .time_limit(Duration::from_secs_f64(self.time_limit))
            .patience(Duration::from_millis(self.patience))
            .seed(self.seed)
            .command_line(self.command_line());
        if let Some(url) = &self.confirm {
            sweep = sweep.confirm(url);
        }
        if let Some(millis) = self.clock {
            sweep = sweep.clock(millis);
        }
        for pattern in &self.ignore {
            sweep = sweep.ignore(pattern);
        }
        for (keys, fields) in &self.ignore_field {
            sweep = sweep.ignore_field(keys, fields);
        }
        for (role, command) in [(Role::Setup, &self.setup), (Role::After, &self.after)] {
            if let Some(command) = command {
                let words = split_words(command)
                    .filter(|words| !words.is_empty())
                    .ok_or_else(|| {
                        format!("`{command}` is no command: it is empty, or a quote does not end")
                    })?;
                sweep = sweep.command(role, words);
            }
        }
        for (role, name) in &self.host {
            sweep = sweep.hosted(*role, name);
        }
        let programs: Vec<&[String]> = self
            .programs
            .split(|word| word == "--")
            .filter(|words| !words.is_empty())
            .collect();
        let is_free = |role: &&Role| self.host.iter().all(|(hosted, _)| hosted != *role);
        let free: Vec<_> = roles.iter().filter(is_free).collect();
        if programs.len() > free.len() {
            return Err(format!(
                "{} programs are given, and there is room for {}",
                programs.len(),
                free.len()
            ));
        }
        for (role, words) in free.into_iter().zip(programs) {
            sweep = sweep.command(*role, words.to_vec());
        }
        Ok(sweep)
    }

    /// The options and programs that make a schedule what it is.
    fn command_line(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        if let Some(setup) = &self.setup {
            option("--setup", setup.clone());
        }
        if let Some(after) = &self.after {
            option("--after", after.clone());
        }
        if let CompareBy::Shape = self.compare {
            option("--compare", "shape".to_owned());
        }
        if self.output == OutputRule::Ignore {
            option("--output", "ignore".to_owned());
        }
        for pattern in &self.ignore {
            option("--ignore", pattern.clone());
        }
        for (keys, fields) in &self.ignore_field {
            option("--ignore-field", format!("{keys}:{fields}"));
        }
        if !self.programs.is_empty() {
            words.push("--".to_owned());
            words.extend(self.programs.iter().cloned());
        }
        words
    }

    fn write_report(&self, report: &Report) -> Result<(), String> {
        if let Some(path) = &self.html {
            write(path, &report.html())?;
        }
        match &self.json {
            Some(path) if path == Path::new("-") => print(&report.to_json()),
            Some(path) => write(path, &report.to_json()),
            None => Ok(()),
        }
    }
}

/// Words as a shell splits them: quotes and backslashes, nothing else. None if a quote does not end.
fn split_words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"') | None, '\\') => word.get_or_insert_default().push(chars.next()?),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{}", text.trim_end()) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_like_a_shell_does() {
        let split = |text| split_words(text).map(|words| words.join("|"));
        assert_eq!(
            split("a  b'c d' \"e\\\"f\" g\\ h ''").as_deref(),
            Some("a|bc d|e\"f|g h|")
        );
        assert_eq!(split(""), Some(String::new()));
        assert_eq!(split("a 'b"), None);
        assert_eq!(split("a\\"), None);
    }

    #[test]
    fn a_field_pattern_ends_with_its_fields() {
        assert_eq!(
            field_pattern("job:*:at"),
            Ok(("job:*".to_owned(), "at".to_owned()))
        );
        assert!(field_pattern("job").is_err());
    }
}
