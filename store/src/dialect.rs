//! The two wire dialects of the key space.

use crate::{Rejection, StoreError, keys::Keys};

/// Which of the two released forms of the Python store a store writes like. Key names, values and effects are the same in
/// both; rows of one are read and continued by the other, and neither loses what the other put there.
///
/// | | [`Dialect::Seed`] | [`Dialect::V09`] |
/// |---|---|---|
/// | default prefix | `stm` | `harel` |
/// | prefixes | any whose keys are not another store's | `[A-Za-z_][A-Za-z0-9_]{0,29}`, with or without braces around a part |
/// | a new row has | 18 members | 22: `created_at`, `updated_at`, `finished_at`, `expires_at` too, null if unset |
/// | the Python client's conflict marker | `STM_CONFLICT:` | `HAREL_CONFLICT:` |
///
/// A `{tag}` in the prefix keeps all keys in one slot of a Redis Cluster. Both dialects allow it here; the Python store
/// 0.9.0 refuses such a prefix, so that it can not share a store of that kind.
///
/// ```
/// use store::{Dialect, Settings};
///
/// let settings = Settings::in_dialect(Dialect::V09, "orders")?;
/// assert_eq!(settings.dialect(), Dialect::V09);
/// assert_eq!(Settings::of_dialect(Dialect::V09).keys().prefix(), "harel");
/// assert!(Settings::in_dialect(Dialect::V09, "app:orders").is_err());
/// # Ok::<(), store::StoreError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Dialect {
    /// The first one, up to 0.2.
    #[default]
    Seed,
    /// Of release 0.9.0.
    V09,
}

/// Characters of a prefix that the newer dialect takes.
const PREFIX_LEN_MAX: usize = 30;

impl Dialect {
    /// The prefix of a store that was not told another.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Seed => "stm",
            Self::V09 => "harel",
        }
    }

    /// What the Python client's script puts in front of the version that it found; logs and statistics of errors of a
    /// server show it. Scripts are private to each client: those of this store say `STM_CONFLICT:` in both dialects.
    pub const fn conflict_marker(self) -> &'static str {
        match self {
            Self::Seed => "STM_CONFLICT:",
            Self::V09 => "HAREL_CONFLICT:",
        }
    }

    /// The key names under a prefix that this dialect allows.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a prefix against the rule.
    pub fn keys(self, prefix: impl Into<String>) -> Result<Keys, StoreError> {
        let prefix = prefix.into();
        if self == Self::V09 && !is_name(&without_braces(&prefix)) {
            return Err(StoreError::Invalid {
                what: "prefix",
                reason: Rejection::Malformed,
            });
        }
        Keys::new(prefix)
    }
}

/// The text without the braces of its tag, if it has one.
fn without_braces(prefix: &str) -> String {
    let tagged = prefix.split_once('{').and_then(|(before, rest)| {
        let (tag, behind) = rest.split_once('}')?;
        (!tag.is_empty()).then(|| format!("{before}{tag}{behind}"))
    });
    tagged.unwrap_or_else(|| prefix.to_owned())
}

fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=PREFIX_LEN_MAX).contains(&text.len())
        && text.bytes().all(fits)
        && !text.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_dialect_takes_names_with_or_without_a_tag() {
        let long = "p".repeat(PREFIX_LEN_MAX);
        for good in [
            "harel",
            "_",
            "A9_",
            long.as_str(),
            "{harel}",
            "app{t}",
            "{t}x",
        ] {
            assert!(Dialect::V09.keys(good).is_ok(), "{good}");
        }
        let longer = "p".repeat(PREFIX_LEN_MAX + 1);
        for bad in [
            "",
            "9a",
            "a:b",
            "a-b",
            "\u{e9}",
            "a\n",
            "{}",
            "{a",
            "a}",
            "{a}{b}",
            "{a}}",
            longer.as_str(),
        ] {
            assert!(Dialect::V09.keys(bad).is_err(), "{bad:?}");
        }
        assert!(Dialect::Seed.keys("app:orders").is_ok());
    }

    #[test]
    fn each_default_prefix_keeps_its_own_rule() {
        for dialect in [Dialect::Seed, Dialect::V09] {
            assert!(dialect.keys(dialect.prefix()).is_ok());
        }
    }
}
