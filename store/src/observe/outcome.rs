//! How a call ended, in one word.

use crate::StoreError;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok,
    Failed(&'static str),
    /// Its future was dropped, or the caller panicked.
    Abandoned,
}

impl Outcome {
    pub(crate) fn of<T>(result: &Result<T, StoreError>) -> Self {
        match result {
            Ok(_) => Self::Ok,
            Err(error) => Self::Failed(error.kind()),
        }
    }

    /// As it stands in spans and labels.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed(kind) => kind,
            Self::Abandoned => "abandoned",
        }
    }

    /// Whether somebody should look: data is damaged, or may have been written without anybody knowing.
    pub(crate) fn is_alarming(self) -> bool {
        matches!(self, Self::Failed("indeterminate" | "partial" | "corrupt"))
    }
}
