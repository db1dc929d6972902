//! [`RuleError`]: why a rule of `ACL SETUSER` is refused.

use thiserror::Error;

/// Why a rule is refused; the texts are Redis' own.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum RuleError {
    /// `+config|get|x`.
    #[error("Allowing first-arg of a subcommand is not supported")]
    FirstArgOfSubcommand,
    /// A digest that is none.
    #[error(
        "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
    )]
    PasswordHash,
    /// A password to be removed that the user does not have.
    #[error("The password you are trying to remove from the user does not exist")]
    PasswordMissing,
    /// A channel where all are allowed.
    #[error(
        "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels"
    )]
    PatternBehindAllChannels,
    /// A key where all are allowed.
    #[error(
        "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns"
    )]
    PatternBehindAllKeys,
    /// A rule that is none.
    #[error("Syntax error")]
    Syntax,
    /// A command or category that is not known.
    #[error("Unknown command or category name in ACL")]
    Unknown,
}
