//! CLIENT KILL in its old and its new form.

use super::client::{ClientType, client_type, connected};
use super::{Args, CommandResult, ControlCall, Words};
use crate::acl::UserId;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::resolve::printable;
use crate::session::SessionId;
use crate::value::number;
use crate::wire::Reply;

/// Which connections are meant: those that fit all conditions.
#[derive(Debug, Default)]
struct Filter<'a> {
    id: Option<SessionId>,
    kind: Option<ClientType>,
    user: Option<UserId>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    skip_me: bool,
}

/// `CLIENT KILL addr`, or `CLIENT KILL [ID id] [TYPE type] [USER user] [ADDR addr] [LADDR addr] [SKIPME yes|no]`.
///
/// Closes connections; the old form replies with `OK`, the new one with how many there were. Errors: no such client (old form);
/// an id that is no positive integer; unknown type or user; syntax.
pub(super) fn kill(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let old_form = args.len() == 1;
    let filter = if old_form {
        Filter {
            address: Some(args.next()?),
            ..Filter::default()
        }
    } else {
        Filter::parse(args, call.engine)?
    };
    let mut killed = 0;
    for id in connected(call.engine) {
        if filter.skip_me && id == call.session || !filter.fits(call.engine, id) {
            continue;
        }
        killed += 1;
        // One's own connection is closed behind the reply.
        if id == call.session {
            if let Some(session) = call.engine.sessions.get_mut(&id) {
                session.closing = true;
            }
        } else {
            call.engine.hang_up(id);
        }
    }
    match (old_form, killed) {
        (true, 0) => Err(CommandError::custom("ERR No such client")),
        (true, _) => Ok(Reply::OK),
        (false, killed) => Ok(Reply::count(killed)),
    }
}

impl<'a> Filter<'a> {
    fn parse(mut args: Args<'a>, engine: &Engine) -> Result<Filter<'a>, CommandError> {
        let mut filter = Filter {
            skip_me: true,
            ..Filter::default()
        };
        while let Some(name) = args.next_if_any() {
            let value = args.next()?;
            match name.to_ascii_uppercase().as_slice() {
                b"ID" => filter.id = Some(parse_id(value)?),
                b"TYPE" => filter.kind = Some(ClientType::parse(value)?),
                b"ADDR" => filter.address = Some(value),
                b"LADDR" => filter.local_address = Some(value),
                b"USER" => filter.user = Some(parse_user(engine, value)?),
                b"SKIPME" if value.eq_ignore_ascii_case(b"yes") => filter.skip_me = true,
                b"SKIPME" if value.eq_ignore_ascii_case(b"no") => filter.skip_me = false,
                _ => return Err(CommandError::Syntax),
            }
        }
        Ok(filter)
    }

    fn fits(&self, engine: &Engine, id: SessionId) -> bool {
        let Some(session) = engine.sessions.get(&id) else {
            return false;
        };
        self.id.is_none_or(|wanted| wanted == id)
            && self.kind.is_none_or(|kind| kind == client_type(engine, id))
            && self.user.is_none_or(|user| user == session.user)
            && self
                .address
                .is_none_or(|address| address == session.address.as_bytes())
            && self
                .local_address
                .is_none_or(|address| address == session.local_address.as_bytes())
    }
}

fn parse_user(engine: &Engine, name: &[u8]) -> Result<UserId, CommandError> {
    engine.acl.id(name).ok_or_else(|| {
        let text = [b"ERR No such user '", printable(name, usize::MAX), b"'"].concat();
        CommandError::custom(text)
    })
}

fn parse_id(text: &[u8]) -> Result<SessionId, CommandError> {
    number::parse_integer(text)
        .filter(|id| *id > 0)
        .map(|id| SessionId(id as u64))
        .ok_or(CommandError::custom(
            "ERR client-id should be greater than 0",
        ))
}
