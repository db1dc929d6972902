//! How permissions are written as rules: the shortest that Redis finds, by categories first and then by single commands.

use super::selector::{CommandSet, KeyPattern, Reach, Selector};
use crate::command::{Categories, all_commands};

impl Selector {
    /// All rules, as in a line of `ACL LIST`.
    pub(super) fn rules(&self) -> Vec<u8> {
        let mut rules = Vec::new();
        match self.key_rules() {
            keys if keys.is_empty() => {}
            keys => rules.extend([keys.as_slice(), b" "].concat()),
        }
        if self.channels != Reach::All {
            rules.extend_from_slice(b"resetchannels ");
        }
        match self.channel_rules() {
            channels if channels.is_empty() => {}
            channels => rules.extend([channels.as_slice(), b" "].concat()),
        }
        rules.extend(self.command_rules());
        rules
    }

    /// The key patterns, with blanks between them.
    pub(super) fn key_rules(&self) -> Vec<u8> {
        match &self.keys {
            Reach::All => b"~*".to_vec(),
            Reach::Only(patterns) => {
                let rules: Vec<_> = patterns.iter().map(KeyPattern::rule).collect();
                rules.join(&b' ')
            }
        }
    }

    /// The channel patterns, with blanks between them.
    pub(super) fn channel_rules(&self) -> Vec<u8> {
        match &self.channels {
            Reach::All => b"&*".to_vec(),
            Reach::Only(patterns) => {
                let rules = patterns.iter().map(|pattern| [b"&", &**pattern].concat());
                rules.collect::<Vec<_>>().join(&b' ')
            }
        }
    }

    /// The commands: from all or from none, first the categories that differ least, then what is left.
    pub(super) fn command_rules(&self) -> Vec<u8> {
        let adds = !self.takes_future();
        let mut rules = vec![if adds { "-@all" } else { "+@all" }.as_bytes().to_vec()];
        let mut made = Selector::new(false);
        made.allow_all(!adds);
        let mut left = self.commands;
        let mut candidates: Vec<_> = Categories::all().collect();
        while let Some(at) = best(&candidates, &left, adds) {
            let (name, category) = candidates.remove(at);
            let members = all_commands().filter(|(_, known)| known.is_in(category));
            for (id, _) in members {
                made.commands.change(id, adds);
                left.change(id, !adds);
            }
            rules.push([sign(adds), b"@", name.as_bytes()].concat());
        }
        self.add_single_rules(made.commands, &mut rules);
        rules.join(&b' ')
    }

    /// Rules about single commands, where those so far come to something else.
    fn add_single_rules(&self, mut made: CommandSet, rules: &mut Vec<Vec<u8>>) {
        for (id, known) in all_commands() {
            let allowed = self.commands.contains(id);
            if allowed != made.contains(id) {
                rules.push([sign(allowed), known.name.as_bytes()].concat());
                made.change(id, allowed);
            }
            let first_args = self.first_args.get(&id).filter(|_| !allowed);
            for word in first_args.into_iter().flatten() {
                rules.push([b"+", known.name.as_bytes(), b"|", word].concat());
            }
        }
    }
}

fn sign(allowed: bool) -> &'static [u8] {
    if allowed { b"+" } else { b"-" }
}

/// The category that has more in common with the commands than not, and of those the one that differs least.
fn best(candidates: &[(&str, Categories)], left: &CommandSet, adds: bool) -> Option<usize> {
    let scores = candidates
        .iter()
        .enumerate()
        .filter_map(|(at, (_, category))| {
            let (mut same, mut different) = (0_usize, 0_usize);
            let members = all_commands().filter(|(_, known)| known.is_in(*category));
            for (id, _) in members {
                if left.contains(id) == adds {
                    same += 1;
                } else {
                    different += 1;
                }
            }
            (same > different).then_some((different, std::cmp::Reverse(same), at))
        });
    scores.min().map(|(.., at)| at)
}
