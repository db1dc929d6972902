//! Access control in the engine: who may run what, what is said of denials, and what follows when a user changes.

use super::{Context, Denial, Entry, Reason, User, UserId};
use crate::command::{Row, View, setting};
use crate::config::Config;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::pubsub::Topic;
use crate::session::{SessionId, Transaction};
use crate::value::{Blob, number};
use crate::wire::Request;

/// A request that is denied, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Denied<'a> {
    pub row: &'a Row,
    pub request: &'a Request,
    pub context: Context,
    /// The transaction that EXEC runs.
    pub executing: Option<&'a Transaction>,
}

impl<'a> Denied<'a> {
    /// A request of a client that is in no transaction.
    pub(crate) fn new(row: &'a Row, request: &'a Request) -> Denied<'a> {
        Denied {
            row,
            request,
            context: Context::TopLevel,
            executing: None,
        }
    }
}

impl Denial {
    /// The error of a request of a client.
    pub(crate) fn error(self, row: &Row) -> CommandError {
        match self {
            Denial::Command => CommandError::NoPermissionToRun(row.full_name().into()),
            Denial::Key(_) => CommandError::NoPermissionForKey,
            Denial::Channel(_) => CommandError::NoPermissionForChannel,
        }
    }

    /// The error of a command that was queued when it was still allowed.
    pub(crate) fn error_in_exec(self) -> CommandError {
        CommandError::NoPermissionInExec(match self {
            Denial::Command => "no permission to execute the command or subcommand",
            Denial::Key(_) => "no permission to touch the specified keys",
            Denial::Channel(_) => "no permission to access one of the channels used as arguments",
        })
    }

    /// The error of a command that a script calls.
    #[cfg(feature = "lua")]
    pub(crate) fn error_in_script(self) -> CommandError {
        CommandError::NoPermissionInScript(match self {
            Denial::Command => "can't run this command or subcommand",
            Denial::Key(_) => {
                "can't access at least one of the keys mentioned in the command arguments"
            }
            Denial::Channel(_) => "can't publish to the channel mentioned in the command",
        })
    }

    /// What the log names.
    fn object(self, row: &Row, request: &Request) -> Blob {
        match self {
            Denial::Command => Blob::from(row.full_name()),
            Denial::Key(at) | Denial::Channel(at) => {
                Blob::from(request.get(at).unwrap_or_default())
            }
        }
    }
}

impl Engine {
    /// Whether a client may run a command. Errors: what it lacks.
    pub(crate) fn check_permission(
        &self,
        id: SessionId,
        row: &'static Row,
        request: &Request,
    ) -> Result<(), Denial> {
        match self.restricted_user(id) {
            Some(user) => user.check(row, request),
            None => Ok(()),
        }
    }

    /// The user of a client, unless nobody is restricted.
    pub(crate) fn restricted_user(&self, id: SessionId) -> Option<&std::sync::Arc<User>> {
        if !self.acl.is_restricting {
            return None;
        }
        self.acl.user(self.sessions.get(&id)?.user)
    }

    /// Whether a command of a client may look at keys that its words do not name.
    pub(crate) fn may_read_any_key(
        &self,
        id: SessionId,
        row: &'static Row,
        request: &Request,
    ) -> bool {
        self.restricted_user(id)
            .is_none_or(|user| user.may_read_any_key(row, request))
    }

    /// Where a client's request of its own is denied.
    pub(crate) fn context(&self, id: SessionId) -> Context {
        let session = self.sessions.get(&id);
        match session.and_then(|session| session.transaction.as_ref()) {
            Some(_) => Context::Multi,
            None => Context::TopLevel,
        }
    }

    /// Notes that a command was denied.
    pub(crate) fn log_denial(&mut self, id: SessionId, denial: Denial, denied: &Denied<'_>) {
        let user = self.sessions.get(&id).map(|session| session.user);
        let user = Blob::from(self.acl.name(user.unwrap_or(UserId::DEFAULT)));
        let object = denial.object(denied.row, denied.request);
        self.log_entry(id, denial.into(), (object, user), denied);
    }

    fn log_entry(
        &mut self,
        id: SessionId,
        reason: Reason,
        (object, user): (Blob, Blob),
        denied: &Denied<'_>,
    ) {
        let view = View {
            engine: self,
            viewer: id,
            request: denied.request,
            executing: denied.executing,
            now: self.now,
        };
        let client = self.sessions.get(&id).map(|session| view.line(session));
        let entry = Entry {
            count: 1,
            reason,
            context: denied.context,
            object,
            user,
            at: self.now,
            client: Blob::from(client.unwrap_or_default()),
        };
        let len_max = number::parse_integer(&setting(&self.config, "acllog-max-len"));
        self.acl
            .log
            .push(entry, len_max.unwrap_or(0).max(0) as usize);
    }

    /// Makes a client another user, if the password is right. Errors: it is not, and that is noted.
    pub(crate) fn authenticate(
        &mut self,
        id: SessionId,
        (name, password): (&[u8], &[u8]),
        denied: &Denied<'_>,
    ) -> Result<(), CommandError> {
        let user = self.acl.id(name);
        let accepted = user.filter(|id| {
            let user = self.acl.user(*id);
            user.is_some_and(|user| user.accepts(password))
        });
        let Some(user) = accepted else {
            let object = Blob::from(denied.request.name());
            self.log_entry(id, Reason::Auth, (object, Blob::from(name)), denied);
            return Err(CommandError::WrongPassword);
        };
        if let Some(session) = self.sessions.get_mut(&id) {
            session.user = user;
            session.authenticated = true;
        }
        Ok(())
    }

    /// Changes a user by rules, or makes one. Errors: see [`super::Acl`]; then nothing is changed.
    pub(crate) fn set_user(&mut self, name: &[u8], rules: &[&[u8]]) -> Result<(), CommandError> {
        let user = self.acl.prepare(name, rules, &self.config)?;
        let id = self.acl.id_for(name);
        if self
            .acl
            .user(id)
            .is_some_and(|known| !user.hears_all_of(known))
        {
            self.hang_up_on_listeners(id, &user);
        }
        self.acl.insert(id, Blob::from(name), user);
        Ok(())
    }

    /// Closes the connections of a user that listen to what it may no longer hear.
    fn hang_up_on_listeners(&mut self, user: UserId, changed: &User) {
        let hears_more = |id: SessionId| {
            let topics = [Topic::Pattern, Topic::Channel, Topic::Shard];
            topics.into_iter().any(|topic| {
                let names = self.pubsub.names(topic, id);
                names.iter().any(|name| !changed.may_hear(topic, name))
            })
        };
        let clients = self.clients_of(user);
        let lost: Vec<_> = clients.into_iter().filter(|id| hears_more(*id)).collect();
        for id in lost {
            self.hang_up(id);
        }
    }

    /// Forgets a user, and closes the connections that are this user's; whether there was one. The caller's own is closed behind
    /// the reply.
    pub(crate) fn delete_user(&mut self, name: &[u8], caller: SessionId) -> bool {
        let Some(user) = self.acl.remove(name) else {
            return false;
        };
        for id in self.clients_of(user) {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.user = UserId::DEFAULT;
                session.authenticated = false;
                session.closing |= id == caller;
            }
            if id != caller {
                self.hang_up(id);
            }
        }
        true
    }

    fn clients_of(&self, user: UserId) -> Vec<SessionId> {
        let sessions = self
            .sessions
            .values()
            .filter(|session| session.user == user);
        let mut ids: Vec<_> = sessions.map(|session| session.id).collect();
        ids.sort_unstable();
        ids
    }

    /// Gives the default user the configured password, if it is another one than before.
    pub(crate) fn apply_password(&mut self, before: &Config) {
        if before.requirepass != self.config.requirepass {
            let password = self.config.requirepass.clone();
            self.acl.set_default_password(&password);
        }
    }
}
