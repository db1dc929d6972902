//! [`User`]: a name that a client can have, with its passwords and permissions.

use sha2::{Digest, Sha256};

use super::error::RuleError;
use super::selector::{Selector, until_nul};
use crate::value::Blob;
use crate::wire::request::split_words;

/// Digits of a password's digest.
const DIGEST_LEN: usize = 64;

/// A user without its name.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub is_enabled: bool,
    /// Any password will do.
    pub needs_no_password: bool,
    /// What was said of RESTORE's payloads, if anything; they are looked at all the same.
    sanitizes: Option<bool>,
    /// SHA-256 digests in lower-case hexadecimal digits.
    passwords: Vec<Blob>,
    pub(super) root: Selector,
    /// Further permissions, each for itself.
    pub(super) selectors: Vec<Selector>,
}

impl User {
    /// A disabled user without any permission, but for what `acl-pubsub-default` gives.
    pub(super) fn new(all_channels: bool) -> User {
        User {
            is_enabled: false,
            needs_no_password: false,
            sanitizes: None,
            passwords: Vec::new(),
            root: Selector::new(all_channels),
            selectors: Vec::new(),
        }
    }

    /// The user that every connection begins with.
    pub(super) fn default_user() -> User {
        User {
            is_enabled: true,
            needs_no_password: true,
            root: Selector::unrestricted(),
            ..User::new(true)
        }
    }

    /// All permissions; what one of them allows is allowed.
    pub(super) fn all_selectors(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.root).chain(&self.selectors)
    }

    /// Whether there is nothing that the user may not do.
    pub(super) fn is_unrestricted(&self) -> bool {
        self.all_selectors().any(Selector::is_unrestricted)
    }

    /// Whether a client may come in under this name with this password.
    pub(super) fn accepts(&self, password: &[u8]) -> bool {
        self.is_enabled && (self.needs_no_password || self.passwords.contains(&digest_of(password)))
    }

    /// Replaces all passwords by one, or by none at all (`requirepass`).
    pub(super) fn set_password(&mut self, password: &[u8]) {
        self.needs_no_password = password.is_empty();
        self.passwords.clear();
        if !password.is_empty() {
            self.passwords.push(digest_of(password));
        }
    }

    /// Changes the user by one rule. Errors: the rule is none.
    pub(super) fn apply(&mut self, rule: &[u8], all_channels: bool) -> Result<(), RuleError> {
        match until_nul(rule).to_ascii_lowercase().as_slice() {
            b"" if rule.is_empty() => {}
            b"on" => self.is_enabled = true,
            b"off" => self.is_enabled = false,
            b"skip-sanitize-payload" => self.sanitizes = Some(false),
            b"sanitize-payload" => self.sanitizes = Some(true),
            b"nopass" => self.set_password(b""),
            b"resetpass" => {
                self.needs_no_password = false;
                self.passwords.clear();
            }
            b"clearselectors" => self.selectors.clear(),
            b"reset" => {
                *self = User::new(all_channels);
                self.sanitizes = Some(true);
            }
            _ => return self.apply_special(rule, all_channels),
        }
        Ok(())
    }

    fn apply_special(&mut self, rule: &[u8], all_channels: bool) -> Result<(), RuleError> {
        match rule {
            [b'>', password @ ..] => self.add_password(digest_of(password)),
            [b'#', digest @ ..] => self.add_password(checked_digest(digest)?),
            [b'<', password @ ..] => return self.remove_password(&digest_of(password)),
            [b'!', digest @ ..] => return self.remove_password(&checked_digest(digest)?),
            [b'(', rules @ .., b')'] => {
                let mut selector = Selector::new(all_channels);
                // Quotes that do not fit together leave nothing, as Redis has it.
                for rule in split_words(until_nul(rules)).unwrap_or_default() {
                    selector.apply(&rule)?;
                }
                self.selectors.push(selector);
            }
            rule => return self.root.apply(rule),
        }
        Ok(())
    }

    fn add_password(&mut self, digest: Blob) {
        if !self.passwords.contains(&digest) {
            self.passwords.push(digest);
        }
        self.needs_no_password = false;
    }

    fn remove_password(&mut self, digest: &Blob) -> Result<(), RuleError> {
        let at = self.passwords.iter().position(|known| known == digest);
        self.passwords.remove(at.ok_or(RuleError::PasswordMissing)?);
        Ok(())
    }

    /// The digests of the passwords.
    pub(crate) fn passwords(&self) -> &[Blob] {
        &self.passwords
    }

    /// The flags, in Redis' order.
    pub(crate) fn flags(&self) -> impl Iterator<Item = &'static str> {
        let flags = [
            ("on", self.is_enabled),
            ("off", !self.is_enabled),
            ("nopass", self.needs_no_password),
            ("skip-sanitize-payload", self.sanitizes == Some(false)),
            ("sanitize-payload", self.sanitizes == Some(true)),
        ];
        flags
            .into_iter()
            .filter(|(_, set)| *set)
            .map(|(name, _)| name)
    }

    /// What the user may do, one set of permissions after the other, the root first.
    pub(crate) fn permissions(&self) -> impl Iterator<Item = Permissions> {
        self.all_selectors().map(|selector| Permissions {
            commands: Blob::from(selector.command_rules()),
            keys: Blob::from(selector.key_rules()),
            channels: Blob::from(selector.channel_rules()),
        })
    }

    /// All rules that make this user, as in a line of `ACL LIST`.
    pub(crate) fn rules(&self) -> Vec<u8> {
        let mut words: Vec<Vec<u8>> = self.flags().map(Into::into).collect();
        words.extend(
            self.passwords
                .iter()
                .map(|digest| [b"#", &**digest].concat()),
        );
        words.push(self.root.rules());
        let selectors = self.selectors.iter();
        words.extend(selectors.map(|selector| [b"(", selector.rules().as_slice(), b")"].concat()));
        words.join(&b' ')
    }
}

/// One set of permissions as rules.
#[derive(Clone, Debug)]
pub(crate) struct Permissions {
    pub commands: Blob,
    pub keys: Blob,
    pub channels: Blob,
}

fn digest_of(password: &[u8]) -> Blob {
    let digest = Sha256::digest(password);
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits = digits.filter_map(|digit| char::from_digit(digit.into(), 16));
    Blob::from(digits.collect::<String>())
}

/// A digest as it was typed. Errors: it is none.
fn checked_digest(digest: &[u8]) -> Result<Blob, RuleError> {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if digest.len() == DIGEST_LEN && digest.iter().all(is_digit) {
        Ok(Blob::from(digest))
    } else {
        Err(RuleError::PasswordHash)
    }
}
