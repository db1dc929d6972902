//! [`html()`]: the report as one page that needs no network and no server, and shows all it knows without its script, too.

mod outcomes;

use std::fmt::Write as _;

use crate::report::diagram::diagram;
use crate::report::escape::escaped;
use crate::report::page;
use crate::sweep::report::{Finding, Programs, Report};
use crate::sweep::view::{Lanes, also, picture, told_cause};

/// The report as a page.
pub(crate) fn html(report: &Report) -> String {
    let mut out = String::new();
    page::head(&mut out, &format!("Race sweep: {}", verdict(report)));
    summary(&mut out, report);
    contents(&mut out, report);
    for (at, finding) in report.findings.iter().enumerate() {
        article(&mut out, report, at, finding);
    }
    foot(&mut out, report);
    out
}

fn verdict(report: &Report) -> String {
    match report.findings.len() {
        0 => "no findings".to_owned(),
        1 => "1 finding".to_owned(),
        count => format!("{count} findings"),
    }
}

fn summary(out: &mut String, report: &Report) {
    let class = if report.is_clean() { "clean" } else { "found" };
    let verdict = verdict(report);
    let claim = escaped(&report.claim);
    let link = if report.is_clean() { ": " } else { " in " };
    let _ = write!(
        out,
        "<header class=\"top\">\n<p class=\"brand\">Race sweep</p>\n\
         <h1><span class=\"verdict {class}\">{verdict}</span><span class=\"claim\">{link}{claim}</span></h1>\n<dl class=\"programs\">\n"
    );
    programs(out, &report.programs);
    let server = escaped(&report.server);
    let seconds = report.seconds;
    let _ = write!(
        out,
        "<div><dt>server</dt><dd>{server}</dd></div>\n</dl>\n<ul class=\"runs\">\n"
    );
    for (kind, count) in report.runs.iter().filter(|(_, count)| **count > 0) {
        let skipped = match report.skipped.get(kind) {
            Some(count) if *count > 0 => {
                format!(" <small>and {count} skipped, which follow from these</small>")
            }
            _ => String::new(),
        };
        let kind = escaped(kind);
        let _ = writeln!(out, "<li><b>{count}</b> {kind}{skipped}</li>");
    }
    let _ = write!(
        out,
        "<li><b>{seconds:.3}</b> s</li>\n</ul>\n</header>\n<main>\n"
    );
}

fn programs(out: &mut String, programs: &Programs) {
    let listed = [
        ("A", Some(&programs.a)),
        ("B", programs.b.as_ref()),
        ("C", programs.more.first()),
        ("D", programs.more.get(1)),
        ("E", programs.more.get(2)),
        ("setup", programs.setup.as_ref()),
        ("after", programs.after.as_ref()),
    ];
    for (name, words) in listed {
        if let Some(words) = words {
            let command = escaped(&words.join(" "));
            let _ = writeln!(
                out,
                "<div><dt>{name}</dt><dd><code>{command}</code></dd></div>"
            );
        }
    }
}

fn contents(out: &mut String, report: &Report) {
    if report.findings.is_empty() {
        return;
    }
    out.push_str("<nav aria-label=\"Findings\">\n<ol class=\"contents\">\n");
    for (at, finding) in report.findings.iter().enumerate() {
        let number = at + 1;
        let kind = badge(&finding.kind);
        let title = escaped(&finding.title);
        let _ = writeln!(
            out,
            "<li>{kind} <a href=\"#finding-{number}\">{title}</a></li>"
        );
    }
    out.push_str("</ol>\n<p class=\"keys\">Walk the steps: <kbd>j</kbd> <kbd>k</kbd> or arrow keys; findings: <kbd>n</kbd> <kbd>p</kbd>.</p>\n</nav>\n");
}

/// A finding's kind. Its colour goes by kinds that there are, anything else has none.
fn badge(kind: &str) -> String {
    let known = [
        "isolation",
        "crash",
        "lost-reply",
        "expiry",
        "restart",
        "stuck",
    ];
    let class = known
        .iter()
        .find(|known| **known == kind)
        .unwrap_or(&"other");
    format!("<span class=\"kind {class}\">{}</span>", escaped(kind))
}

fn article(out: &mut String, report: &Report, at: usize, finding: &Finding) {
    let number = at + 1;
    let title = escaped(&finding.title);
    let kind = badge(&finding.kind);
    let schedule = escaped(&finding.schedule);
    let _ = write!(
        out,
        "<article class=\"finding\" id=\"finding-{number}\" data-finding=\"{at}\">\n<h2><a href=\"#finding-{number}\">{number}</a> {title}</h2>\n\
         <p class=\"facts\">{kind} schedule <code>{schedule}</code>"
    );
    if let Some(also) = also(finding) {
        let _ = write!(
            out,
            " <span class=\"also\">the same by {}</span>",
            escaped(&also)
        );
    }
    for label in &finding.outcome.labels {
        let _ = write!(out, " <span class=\"label\">{}</span>", escaped(label));
    }
    out.push_str("</p>\n");
    if let Some(cause) = told_cause(finding) {
        let _ = writeln!(out, "<p class=\"cause\">{}.</p>", escaped(&cause));
    }
    out.push_str("<div class=\"walk\">\n");
    let picture = picture(finding, &report.programs, Lanes::Connections);
    diagram(out, &picture);
    out.push_str("<aside class=\"detail\" aria-live=\"polite\" hidden></aside>\n</div>\n");
    outcomes::outcomes(out, finding);
    advice(out, finding);
    out.push_str("</article>\n");
}

fn advice(out: &mut String, finding: &Finding) {
    if let Some(repair) = &finding.repair {
        let text = escaped(&repair.text);
        let rule = escaped(&repair.rule);
        let _ = writeln!(
            out,
            "<section class=\"repair\"><h3>Likely repair <code>{rule}</code></h3><p>{text}</p></section>"
        );
    }
    let confirmed = match &finding.confirmed {
        Some(real) if real.same => format!(
            "<span class=\"yes\">yes</span>, the same on {}",
            escaped(&real.server)
        ),
        Some(real) => format!(
            "<span class=\"no\">no</span>, not the same on {}",
            escaped(&real.server)
        ),
        None => "not tried on a real server".to_owned(),
    };
    page::replay(out, &finding.replay, &confirmed);
}

fn foot(out: &mut String, report: &Report) {
    page::list(out, "Left out of the comparison", &report.left_out);
    page::list(out, "Notes", &report.notes);
    for reference in &report.serial {
        let order = escaped(&reference.order);
        let _ = writeln!(
            out,
            "<details class=\"serial\"><summary>Serial: {order}</summary>"
        );
        outcomes::whole(out, &reference.outcome);
        out.push_str("</details>\n");
    }
    page::foot(out, &report.to_json());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::samples;

    #[test]
    fn hostile_names_stay_text() {
        let page = html(&samples::findings());
        // The page's own two, and none that a name brought along.
        assert_eq!(page.matches("<script").count(), 2);
        assert_eq!(page.matches("</script").count(), 2);
        for markup in ["<img", "</title><", "\u{202e}", "\u{1b}", "\u{7}"] {
            assert!(!page.contains(markup), "{markup:?}");
        }
    }

    #[test]
    fn what_is_copied_is_what_the_report_says() {
        let page = html(&samples::findings());
        assert!(page.contains("echo &quot;&lt;b&gt;&quot; &amp;&amp; exit&#39;</code></pre>"));
    }

    #[test]
    fn a_page_carries_its_report() {
        let report = samples::findings();
        let page = html(&report);
        let (_, rest) = page.split_once("id=\"report\">").unwrap();
        let (json, _) = rest.split_once("</script>").unwrap();
        assert_eq!(serde_json::from_str::<Report>(json).unwrap(), report);
    }

    #[test]
    fn a_page_reaches_nothing_outside() {
        let page = html(&samples::findings());
        for reference in [
            "http:", "https:", "//cdn", "src=\"", "url(", "@import", "<link",
        ] {
            assert!(!page.contains(reference), "{reference}");
        }
    }

    #[test]
    fn a_clean_page_names_its_claim() {
        let page = html(&samples::clean());
        assert!(page.contains(
            "no findings</span><span class=\"claim\">: all 14 single-preemption schedules"
        ));
        assert!(!page.contains("<article"));
    }

    /// The browser's test looks at these; `REPORT_PAGES` says where it wants them.
    #[test]
    fn pages_are_written_where_they_are_asked_for() {
        let Some(folder) = std::env::var_os("REPORT_PAGES") else {
            return;
        };
        let folder = std::path::PathBuf::from(folder);
        let pages = [
            ("findings.html", samples::findings()),
            ("clean.html", samples::clean()),
        ];
        for (name, report) in pages {
            std::fs::write(folder.join(name), html(&report)).unwrap();
        }
    }
}
