//! All commands of redis-server 7.0.15, those included that are not in the table: access control speaks of them by name and by
//! category, and a rule about a command that is not there must mean what it means to Redis.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{Row, recorded, rows};

/// Redis' own order of the ACL categories, in which `ACL CAT` lists them.
const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// Number of a command, from 0 on without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CommandId(pub u16);

/// A set of commands' categories, or one category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Categories(u32);

impl Categories {
    /// All categories with their names, one by one.
    pub(crate) fn all() -> impl Iterator<Item = (&'static str, Categories)> {
        CATEGORIES
            .iter()
            .enumerate()
            .map(|(bit, name)| (*name, Categories(1 << bit)))
    }

    /// The category of a name, in any case.
    pub(crate) fn named(name: &[u8]) -> Option<Categories> {
        Categories::all()
            .find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name))
            .map(|(_, category)| category)
    }

    fn meets(self, other: Categories) -> bool {
        self.0 & other.0 != 0
    }
}

/// What access control has to know of a command.
#[derive(Debug)]
pub(crate) struct Known {
    /// The full name in lower case: `get`, `config|set`.
    pub name: &'static str,
    pub is_subcommand: bool,
    pub subcommands: Vec<CommandId>,
    categories: Categories,
}

impl Known {
    /// Whether the command is in one of the categories.
    pub(crate) fn is_in(&self, categories: Categories) -> bool {
        self.categories.meets(categories)
    }
}

struct Index {
    commands: Vec<Known>,
    by_name: HashMap<&'static str, CommandId, foldhash::fast::FixedState>,
    /// By [`Row::index`].
    by_row: Vec<Option<CommandId>>,
}

/// Made when a rule first speaks of commands: a server without rules needs none of it.
static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index {
        commands: Vec::new(),
        by_name: HashMap::default(),
        by_row: Vec::new(),
    };
    for (name, number) in recorded::names().zip(0..) {
        let names = recorded::categories(name);
        let bits =
            names.filter_map(|name| Categories::named(name.trim_start_matches('@').as_bytes()));
        let categories = Categories(bits.fold(0, |all, category| all | category.0));
        let id = CommandId(number);
        let container = name
            .split_once('|')
            .and_then(|(container, _)| index.by_name.get(container));
        if let Some(container) = container.and_then(|id| index.commands.get_mut(usize::from(id.0)))
        {
            container.subcommands.push(id);
        }
        index.commands.push(Known {
            name,
            is_subcommand: name.contains('|'),
            subcommands: Vec::new(),
            categories,
        });
        index.by_name.insert(name, id);
    }
    let all_rows = rows()
        .iter()
        .flat_map(|row| row.subcommands().iter().chain([row]));
    for row in all_rows {
        let at = row.index();
        index.by_row.resize(index.by_row.len().max(at + 1), None);
        index.by_row[at] = index.by_name.get(row.full_name()).copied();
    }
    index
});

/// All commands with their numbers, by name.
pub(crate) fn all_commands() -> impl Iterator<Item = (CommandId, &'static Known)> {
    (0..).map(CommandId).zip(&INDEX.commands)
}

/// The command of a full name, in any case.
pub(crate) fn command_named(name: &[u8]) -> Option<CommandId> {
    let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
    INDEX.by_name.get(name.as_str()).copied()
}

/// What is known of a command.
pub(crate) fn known(id: CommandId) -> Option<&'static Known> {
    INDEX.commands.get(usize::from(id.0))
}

/// The number of a row's command.
pub(crate) fn id_of(row: &Row) -> Option<CommandId> {
    INDEX.by_row.get(row.index()).copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_known() {
        for row in rows()
            .iter()
            .flat_map(|row| row.subcommands().iter().chain([row]))
        {
            let found = id_of(row).and_then(known).unwrap();
            assert_eq!(found.name, row.full_name());
        }
    }
}
