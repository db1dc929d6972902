//! Which present the scripts go by, and where tokens come from.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    process,
};

/// Which present decides what is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Clock {
    /// The server's, read inside of each script: all workers agree, whatever their own clocks say.
    #[default]
    Server,
    /// This moment, in milliseconds since the epoch. For tests and for replaying; leases end by the server's clock all the
    /// same.
    Fixed(u64),
}

impl Clock {
    pub(super) fn argument(self) -> Vec<u8> {
        match self {
            Self::Server => Vec::new(),
            Self::Fixed(now_ms) => now_ms.to_string().into_bytes(),
        }
    }
}

/// Where the numbers in tokens come from. No number may come twice for the same worker: a token is the fence of a lease.
pub struct Tokens(Box<dyn FnMut() -> u128 + Send>);

impl Tokens {
    /// From this generator.
    pub fn new(generator: impl FnMut() -> u128 + Send + 'static) -> Self {
        Self(Box::new(generator))
    }

    /// From hash functions whose keys the operating system has drawn, over a counter and the number of the process (a
    /// forked process inherits both keys and counter).
    pub fn random() -> Self {
        let keys = [RandomState::new(), RandomState::new()];
        let mut count = 0_u64;
        Self::new(move || {
            count = count.wrapping_add(1);
            let [high, low] = keys
                .each_ref()
                .map(|key| key.hash_one((process::id(), count)));
            u128::from(high) << 64 | u128::from(low)
        })
    }

    /// The token of a worker's next lease: its name, a colon, 32 hexadecimal digits.
    pub fn token(&mut self, worker: &str) -> String {
        format!("{worker}:{:032x}", (self.0)())
    }
}

impl Default for Tokens {
    fn default() -> Self {
        Self::random()
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn random_tokens_have_the_form_of_the_python_transport_and_do_not_repeat() {
        let (mut one, mut other) = (Tokens::random(), Tokens::random());
        let tokens: BTreeSet<String> = (0..1000)
            .flat_map(|_| [one.token("w"), other.token("w")])
            .collect();
        assert_eq!(tokens.len(), 2000);
        for token in tokens {
            let digits = token.strip_prefix("w:").unwrap();
            assert_eq!(digits.len(), 32);
            assert!(digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        }
    }
}
