//! Access control: users, what they may do, and the log of what they were denied (acl.c).
//!
//! As long as every user may do everything, which is so until a client says otherwise, a command costs one look at a flag.

mod check;
mod describe;
mod enforce;
mod error;
mod log;
mod selector;
mod user;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::command::setting;
use crate::config::Config;
use crate::error::CommandError;
use crate::value::Blob;

pub(crate) use check::Denial;
pub(crate) use enforce::Denied;
use log::Reason;
pub(crate) use log::{Context, Entry};
pub(crate) use selector::has_blanks;
pub(crate) use user::{Permissions, User};

/// Name of the user that every connection begins with.
pub(crate) const DEFAULT_USER: &[u8] = b"default";

/// A user's number, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct UserId(u64);

impl UserId {
    pub(crate) const DEFAULT: UserId = UserId(0);
}

/// A user with its name.
#[derive(Debug)]
struct Account {
    name: Blob,
    user: Arc<User>,
}

/// All users, and the log.
#[derive(Debug)]
pub(crate) struct Acl {
    accounts: BTreeMap<UserId, Account>,
    by_name: BTreeMap<Blob, UserId>,
    last_id: UserId,
    /// There is a user that may not do everything.
    is_restricting: bool,
    /// Whoever is not authenticated is the default user nevertheless.
    is_open: bool,
    pub log: log::AclLog,
}

impl Acl {
    /// The default user alone, who may do everything, with the password of the configuration.
    pub(crate) fn new(config: &Config) -> Acl {
        let mut acl = Acl {
            accounts: BTreeMap::new(),
            by_name: BTreeMap::new(),
            last_id: UserId::DEFAULT,
            is_restricting: false,
            is_open: true,
            log: log::AclLog::default(),
        };
        acl.insert(
            UserId::DEFAULT,
            Blob::from(DEFAULT_USER),
            User::default_user(),
        );
        if !config.requirepass.is_empty() {
            acl.set_default_password(&config.requirepass);
        }
        acl
    }

    /// Whether there is a user that may not do everything: only then is anything to be checked.
    pub(crate) fn is_restricting(&self) -> bool {
        self.is_restricting
    }

    /// Whether a connection needs no authentication.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether the default user needs no password, though it may be disabled.
    pub(crate) fn takes_any_password(&self) -> bool {
        let default = self.user(UserId::DEFAULT);
        default.is_some_and(|user| user.needs_no_password)
    }

    /// All users with their names, by name.
    pub(crate) fn users(&self) -> impl ExactSizeIterator<Item = (&Blob, Option<&User>)> {
        self.by_name.iter().map(|(name, id)| {
            let account = self.accounts.get(id);
            (name, account.map(|account| &*account.user))
        })
    }

    /// The number of the user of this name.
    pub(crate) fn id(&self, name: &[u8]) -> Option<UserId> {
        self.by_name.get(name).copied()
    }

    /// A user, if it is there still.
    pub(crate) fn user(&self, id: UserId) -> Option<&Arc<User>> {
        self.accounts.get(&id).map(|account| &account.user)
    }

    /// The user of this name.
    pub(crate) fn named(&self, name: &[u8]) -> Option<&Arc<User>> {
        self.user(self.id(name)?)
    }

    /// A user's name.
    pub(crate) fn name(&self, id: UserId) -> &[u8] {
        self.accounts
            .get(&id)
            .map_or(DEFAULT_USER, |account| &account.name)
    }

    /// Replaces the default user's passwords (`requirepass`).
    pub(crate) fn set_default_password(&mut self, password: &[u8]) {
        if let Some(account) = self.accounts.get_mut(&UserId::DEFAULT) {
            Arc::make_mut(&mut account.user).set_password(password);
        }
        self.look_again();
    }

    /// Changes a user by rules, or makes one, with all of them or none: the old user and the new.
    ///
    /// Errors: a bracket that is not closed; a rule that is none.
    fn prepare(&self, name: &[u8], rules: &[&[u8]], config: &Config) -> Result<User, CommandError> {
        let all_channels = setting(config, "acl-pubsub-default").as_bytes() == b"allchannels";
        let known = self.named(name);
        let mut user = known.map_or_else(|| User::new(all_channels), |user| (**user).clone());
        for rule in join_selectors(rules)? {
            user.apply(&rule, all_channels).map_err(|error| {
                let reason = error.to_string();
                let parts: [&[u8]; 4] = [
                    b"ERR Error in ACL SETUSER modifier '",
                    selector::until_nul(&rule),
                    b"': ",
                    reason.as_bytes(),
                ];
                CommandError::custom(one_line(parts.concat()))
            })?;
        }
        Ok(user)
    }

    fn insert(&mut self, id: UserId, name: Blob, user: User) {
        self.by_name.insert(name.clone(), id);
        let user = Arc::new(user);
        self.accounts.insert(id, Account { name, user });
        self.look_again();
    }

    /// A user's number; a new one if the name is new.
    fn id_for(&mut self, name: &[u8]) -> UserId {
        self.id(name).unwrap_or_else(|| {
            self.last_id = UserId(self.last_id.0 + 1);
            self.last_id
        })
    }

    /// Forgets a user; its number if there was one.
    fn remove(&mut self, name: &[u8]) -> Option<UserId> {
        let id = self.by_name.remove(name)?;
        self.accounts.remove(&id);
        self.look_again();
        Some(id)
    }

    fn look_again(&mut self) {
        let mut users = self.accounts.values();
        self.is_restricting = users.any(|account| !account.user.is_unrestricted());
        let default = self.user(UserId::DEFAULT);
        self.is_open = default.is_some_and(|user| user.is_enabled && user.needs_no_password);
    }
}

/// A selector may be sent as several words, from the one that begins with `(` to the one that ends with `)`. Errors: the last
/// one is missing.
fn join_selectors(words: &[&[u8]]) -> Result<Vec<Vec<u8>>, CommandError> {
    let mut rules = Vec::with_capacity(words.len());
    let mut open: Option<(&[u8], Vec<u8>)> = None;
    for word in words {
        let closes = word.last() == Some(&b')');
        if word.first() == Some(&b'(') && !closes {
            open = Some((word, word.to_vec()));
        } else if let Some((_, selector)) = &mut open {
            selector.push(b' ');
            selector.extend_from_slice(selector::until_nul(word));
            if closes {
                rules.extend(open.take().map(|(_, selector)| selector));
            }
        } else {
            rules.push(word.to_vec());
        }
    }
    match open {
        None => Ok(rules),
        Some((word, _)) => {
            let parts: [&[u8]; 3] = [
                b"ERR Unmatched parenthesis in acl selector starting at '",
                selector::until_nul(word),
                b"'.",
            ];
            Err(CommandError::custom(one_line(parts.concat())))
        }
    }
}

/// An error is one line, whatever it echoes.
fn one_line(mut text: Vec<u8>) -> Vec<u8> {
    for byte in &mut text {
        if matches!(byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
    text
}
