//! The page around a report: its head, its script and its data. It needs no network and no server.

use std::fmt::Write as _;

use super::escape::{embedded, escaped};

/// The page's own style and script carry this word; whatever else calls itself a script is not run.
const NONCE: &str = "report";

/// Everything up to the body's begin.
pub(crate) fn head(out: &mut String, title: &str) {
    let style = include_str!("page.css");
    let title = escaped(title);
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{NONCE}'; script-src 'nonce-{NONCE}'; base-uri 'none'; form-action 'none'"
    );
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style nonce=\"{NONCE}\">\n{style}</style>\n</head>\n<body>\n"
    );
}

/// Everything from the end of what is shown: the report as JSON, which the script reads, and the script.
pub(crate) fn foot(out: &mut String, json: &str) {
    let json = embedded(json);
    let script = include_str!("page.js");
    let _ = write!(
        out,
        "</main>\n<script type=\"application/json\" id=\"report\">{json}</script>\n<script nonce=\"{NONCE}\">\n{script}</script>\n</body>\n</html>\n"
    );
}

/// A command that can be copied, and whether a real server does the same; `confirmed` is markup.
pub(crate) fn replay(out: &mut String, command: &str, confirmed: &str) {
    out.push_str("<section class=\"replay\">");
    if !command.is_empty() {
        let command = escaped(command);
        let _ = write!(
            out,
            "<h3>Replay</h3><pre><code>{command}</code></pre><button type=\"button\" class=\"copy\" hidden>Copy</button>"
        );
    }
    let _ = writeln!(
        out,
        "<p class=\"confirmed\">Confirmed: {confirmed}.</p></section>"
    );
}

/// A list under a heading, if there is something to list.
pub(crate) fn list(out: &mut String, title: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = write!(out, "<section class=\"list\"><h2>{title}</h2>\n<ul>\n");
    for item in items {
        let _ = writeln!(out, "<li>{}</li>", escaped(item));
    }
    out.push_str("</ul>\n</section>\n");
}
