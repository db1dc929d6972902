//! The fake as a target of arbitrary bytes: no input brings it down, and each target has something that must hold besides.

mod bench;
mod codec;
mod payload;
mod program;
mod requests;
mod script;

pub use payload::sealed;

/// Longest input that is looked at: what can go wrong shows on less.
pub const LEN_MAX: usize = 4096;

/// What bytes are taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// What a client sends.
    Requests,
    /// Commands of the table with arguments that mostly fit.
    Program,
    /// The source of a script.
    Script,
    /// What cjson, cmsgpack and struct read.
    Codec,
    /// The payload of RESTORE.
    Payload,
}

impl Target {
    /// All targets.
    pub const ALL: [Target; 5] = [
        Target::Requests,
        Target::Program,
        Target::Script,
        Target::Codec,
        Target::Payload,
    ];

    /// The name, of its corpus too.
    pub fn name(self) -> &'static str {
        match self {
            Target::Requests => "requests",
            Target::Program => "program",
            Target::Script => "script",
            Target::Codec => "codec",
            Target::Payload => "payload",
        }
    }

    /// The target of a name.
    pub fn from_name(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Runs what the bytes mean.
    ///
    /// # Errors
    /// What does not hold.
    pub fn run(self, bytes: &[u8]) -> Result<(), String> {
        let bytes = bytes.get(..LEN_MAX).unwrap_or(bytes);
        match self {
            Target::Requests => requests::run(bytes),
            Target::Program => program::run(bytes),
            Target::Script => script::run(bytes),
            Target::Codec => codec::run(bytes),
            Target::Payload => payload::run(bytes),
        }
    }
}
