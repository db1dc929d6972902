//! What a script or a function declares about itself.

use crate::command::Effects;

/// A promise or a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptFlag {
    /// It does not write, and may therefore be run by the read-only commands.
    NoWrites,
    /// It may be run and may write when memory is used up.
    AllowOom,
    /// It may be run on a replica that has lost its master.
    AllowStale,
    /// It may not be run by a node of a cluster.
    NoCluster,
    /// It may reach keys of several slots.
    AllowCrossSlotKeys,
}

/// All flags by their names, in the order in which `FUNCTION LIST` names them.
const NAMES: [(ScriptFlag, &str); 5] = [
    (ScriptFlag::NoWrites, "no-writes"),
    (ScriptFlag::AllowOom, "allow-oom"),
    (ScriptFlag::AllowStale, "allow-stale"),
    (ScriptFlag::NoCluster, "no-cluster"),
    (ScriptFlag::AllowCrossSlotKeys, "allow-cross-slot-keys"),
];

impl ScriptFlag {
    /// The flag of this name, spelled just so (eval.c, `evalExtractShebangFlags`).
    pub(super) fn named(name: &[u8]) -> Option<ScriptFlag> {
        let found = NAMES.iter().find(|(_, known)| known.as_bytes() == name);
        found.map(|(flag, _)| *flag)
    }

    /// The flag of this name in any case (`function_lua.c`, `luaRegisterFunctionReadFlags`).
    pub(super) fn named_in_any_case(name: &[u8]) -> Option<ScriptFlag> {
        ScriptFlag::named(&name.to_ascii_lowercase())
    }
}

/// The flags of one script or function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScriptFlags {
    /// There is a declaration, be it empty, so the script is held to it: of a script a first line `#!lua`, of a function always.
    pub declared: bool,
    bits: u8,
}

impl ScriptFlags {
    /// A declaration without flags.
    pub(super) const DECLARED: ScriptFlags = ScriptFlags {
        declared: true,
        bits: 0,
    };

    pub(super) fn insert(&mut self, flag: ScriptFlag) {
        self.bits |= 1 << flag as u8;
    }

    pub(crate) fn has(self, flag: ScriptFlag) -> bool {
        self.bits & 1 << flag as u8 != 0
    }

    /// The names of the flags that are set.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        let set = NAMES.iter().filter(move |(flag, _)| self.has(*flag));
        set.map(|(_, name)| *name)
    }

    /// What a command that runs the script does, as the declaration tells it (script.c, `scriptFlagsToCmdFlags`); none if there
    /// is no declaration.
    pub(crate) fn effects(self) -> Option<Effects> {
        let writes = !self.has(ScriptFlag::NoWrites);
        self.declared.then_some(Effects {
            writes,
            needs_memory: writes && !self.has(ScriptFlag::AllowOom),
            replicates: false,
        })
    }
}
