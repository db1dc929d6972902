//! Which row of the table a request names, and what is said of one that names none.

use crate::command::{Row, lookup};
use crate::error::CommandError;
use crate::wire::Request;

/// The row that a request names, with its arity checked. Errors: unknown command or subcommand; wrong number of arguments.
pub(crate) fn resolve(request: &Request) -> Result<&'static Row, CommandError> {
    resolve_from(lookup(request.name()), request)
}

/// The same, for a request whose name has been looked up.
pub(crate) fn resolve_from(
    named: Option<&'static Row>,
    request: &Request,
) -> Result<&'static Row, CommandError> {
    let mut row = named.ok_or_else(|| unknown_command(request))?;
    if !row.subcommands().is_empty()
        && let Some(name) = request.get(1)
    {
        row = row
            .subcommand(name)
            .ok_or_else(|| unknown_subcommand(row, name))?;
    }
    if row.accepts(request.len()) {
        Ok(row)
    } else {
        Err(CommandError::WrongArity(row.full_name().into()))
    }
}

/// The row that a request names, whatever its arity.
pub(crate) fn find(request: &Request) -> Option<&'static Row> {
    let row = lookup(request.name())?;
    match request.get(1) {
        Some(name) if !row.subcommands().is_empty() => row.subcommand(name),
        _ => Some(row),
    }
}

/// Redis prints at most this many bytes of a name and of all arguments together.
pub(crate) const ECHO_LEN_MAX: usize = 128;

fn unknown_command(request: &Request) -> CommandError {
    let mut arguments = Vec::new();
    for word in request.words().skip(1) {
        if arguments.len() >= ECHO_LEN_MAX {
            break;
        }
        arguments.push(b'\'');
        arguments.extend_from_slice(printable(word, ECHO_LEN_MAX - arguments.len() + 1));
        arguments.extend_from_slice(b"' ");
    }
    let name = printable(request.name(), ECHO_LEN_MAX);
    let parts: [&[u8]; 4] = [
        b"ERR unknown command '",
        name,
        b"', with args beginning with: ",
        &arguments,
    ];
    CommandError::custom(parts.concat())
}

fn unknown_subcommand(row: &Row, name: &[u8]) -> CommandError {
    let container = row.full_name().to_ascii_uppercase();
    let parts: [&[u8]; 5] = [
        b"ERR unknown subcommand '",
        printable(name, ECHO_LEN_MAX),
        b"'. Try ",
        container.as_bytes(),
        b" HELP.",
    ];
    CommandError::custom(parts.concat())
}

/// An echoed argument that ends an error's text: Redis cuts the text's line breaks off (networking.c, `addReplyErrorFormat`).
pub(crate) fn printable_at_end(bytes: &[u8]) -> &[u8] {
    let bytes = printable(bytes, usize::MAX);
    let last = bytes
        .iter()
        .rposition(|byte| !matches!(byte, b'\r' | b'\n'));
    bytes
        .get(..last.map_or(0, |last| last + 1))
        .unwrap_or_default()
}

/// An echoed argument is cut, and ends at its first NUL byte, since Redis prints it as a C string.
pub(crate) fn printable(bytes: &[u8], len_max: usize) -> &[u8] {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    &bytes[..end.min(len_max)]
}
