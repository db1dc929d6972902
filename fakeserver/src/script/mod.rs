//! Lua scripts: the cache of compiled scripts, and how one is run against the engine.
//!
//! The Lua state is made when the first script arrives and lives until `SCRIPT FLUSH`, as 7.0.15's does. While a script runs
//! the state is taken out of the engine, so that `redis.call` can borrow the engine whole.

mod arguments;
mod bit;
mod cjson;
mod cmsgpack;
mod convert;
mod flags;
mod function;
mod function_state;
mod limits;
mod pattern;
mod protect;
mod push;
mod raise;
mod random;
mod redis_api;
mod run;
mod sandbox;
mod strings;
mod structs;
mod walk;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use sha1::{Digest, Sha1};

use crate::config::Config;
use crate::error::CommandError;
use crate::running::Interlude;
use crate::stats::ScriptFigures;
use crate::value::Blob;
use crate::wire::request::split_words;

pub(crate) use flags::{ScriptFlag, ScriptFlags};
#[cfg(feature = "explore")]
pub(crate) use function::Libraries;
pub(crate) use function::{
    ENGINE, Function, Functions, Library, RestorePolicy, call_function, find_function,
};
pub(crate) use run::{Invocation, run};

/// A script's name: the SHA-1 of its source in lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Sha([u8; 40]);

impl Sha {
    /// The name of a script with this source.
    pub(crate) fn of(source: &[u8]) -> Sha {
        let mut digits = [0; 40];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(Sha1::digest(source)) {
            pair.copy_from_slice(&[hex_digit(byte >> 4), hex_digit(byte & 15)]);
        }
        Sha(digits)
    }

    /// The name that a client sent, in either case; none if it has another length.
    pub(crate) fn parse(word: &[u8]) -> Option<Sha> {
        let digits: [u8; 40] = word.try_into().ok()?;
        Some(Sha(digits.map(|digit| digit.to_ascii_lowercase())))
    }

    /// The digits.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Sha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

fn hex_digit(nibble: u8) -> u8 {
    match nibble {
        0..=9 => b'0' + nibble,
        _ => b'a' + nibble - 10,
    }
}

/// A compiled script.
#[derive(Clone, Debug)]
struct Script {
    /// In Lua's registry, since Rust has room for some thousand values of Lua only.
    function: Arc<mlua::RegistryKey>,
    flags: ScriptFlags,
    source_len: usize,
}

/// What a script in the cache costs beside its source.
const SCRIPT_OVERHEAD: usize = size_of::<(Sha, Script)>();

/// All that the server keeps of scripting.
#[derive(Debug, Default)]
pub(crate) struct ScriptEngine {
    state: Option<Box<State>>,
    pub functions: Functions,
    /// The generator of `math.random` goes on from script to script, `SCRIPT FLUSH` or not.
    random: Option<Arc<random::Lrand48>>,
}

#[derive(Debug)]
struct State {
    sandbox: sandbox::Sandbox,
    cache: HashMap<Sha, Script, foldhash::fast::FixedState>,
    /// Scripts of an earlier life, compiled already and not in the cache; see [`ScriptEngine::renew`].
    compiled: HashMap<Sha, Script, foldhash::fast::FixedState>,
}

/// Compiled scripts that are kept for the next life.
#[cfg(feature = "explore")]
const COMPILED_MAX: usize = 256;

impl ScriptEngine {
    /// Whether a script of this name is in the cache.
    pub(crate) fn contains(&self, sha: &Sha) -> bool {
        self.state
            .as_ref()
            .is_some_and(|state| state.cache.contains_key(sha))
    }

    /// Whether any script is in the cache.
    #[cfg(feature = "explore")]
    pub(crate) fn has_scripts(&self) -> bool {
        self.state
            .as_ref()
            .is_some_and(|state| !state.cache.is_empty())
    }

    /// What a script of this name declares, or would if it had this source; none if there is neither or the source is not
    /// understood.
    pub(crate) fn flags(&self, sha: &Sha, source: Option<&[u8]>) -> Option<ScriptFlags> {
        let state = self.state.as_ref();
        match state.and_then(|state| state.cache.get(sha)) {
            Some(script) => Some(script.flags),
            None => parse_first_line(source?).ok().map(|(flags, _)| flags),
        }
    }

    /// What INFO prints of scripts and functions.
    pub(crate) fn figures(&self) -> ScriptFigures {
        let state = self.state.as_ref();
        let sources = state.map(|state| state.cache.values().map(|script| script.source_len));
        ScriptFigures {
            scripts: state.map_or(0, |state| state.cache.len()),
            scripts_size: sources.map_or(0, |lens| lens.map(|len| len + SCRIPT_OVERHEAD).sum()),
            scripts_lua_size: state.map_or(0, |state| state.sandbox.lua.used_memory()),
            libraries: self.functions.libraries().len(),
            functions: self.functions.len(),
            functions_size: self.functions.size(),
            functions_lua_size: self.functions.lua_memory(),
        }
    }

    /// Forgets all scripts, and the Lua state with them.
    pub(crate) fn flush(&mut self) {
        self.state = None;
    }

    /// As if newly made: the cache is empty and the generator at its beginning. But the Lua state stays, and with it what was
    /// compiled, since making them takes longer than most of the explorer's runs.
    #[cfg(feature = "explore")]
    pub(crate) fn renew(&mut self) {
        if self.functions.len() > 0 {
            self.functions.flush();
        }
        self.forget_scripts();
    }

    /// As [`ScriptEngine::renew`], but functions stay.
    #[cfg(feature = "explore")]
    pub(crate) fn forget_scripts(&mut self) {
        if let Some(random) = &self.random {
            random.reset();
        }
        if let Some(state) = &mut self.state {
            if state.compiled.len() > COMPILED_MAX {
                state.compiled.clear();
            }
            state.compiled.extend(state.cache.drain());
        }
    }

    /// Compiles a script and keeps it. Errors: it does not compile; its first line is not understood.
    pub(crate) fn load(&mut self, source: &[u8], config: &Config) -> Result<Sha, CommandError> {
        let sha = Sha::of(source);
        self.state(config)?.load(sha, source)?;
        Ok(sha)
    }

    /// Loads a library of functions; its name. Errors: see [`Functions`].
    pub(crate) fn load_functions(
        &mut self,
        code: &[u8],
        replace: bool,
        (config, driver): (&Config, Option<Arc<dyn Interlude>>),
    ) -> Result<Blob, CommandError> {
        let random = self.random.get_or_insert_default();
        let making = function::Making {
            random,
            config,
            driver,
        };
        self.functions.load(&making, code, replace)
    }

    /// Loads the libraries of a payload. Errors: see [`Functions`].
    pub(crate) fn restore_functions(
        &mut self,
        payload: &[u8],
        policy: RestorePolicy,
        (config, driver): (&Config, Option<Arc<dyn Interlude>>),
    ) -> Result<(), CommandError> {
        let random = self.random.get_or_insert_default();
        let making = function::Making {
            random,
            config,
            driver,
        };
        self.functions.restore(&making, payload, policy)
    }

    fn state(&mut self, config: &Config) -> Result<&mut State, CommandError> {
        if self.state.is_none() {
            let random = self.random.get_or_insert_default();
            let sandbox = sandbox::Sandbox::new(Arc::clone(random), sandbox::Kind::Scripts, config)
                .map_err(|error| CommandError::custom(format!("ERR {error}")))?;
            self.state = Some(Box::new(State {
                sandbox,
                cache: HashMap::default(),
                compiled: HashMap::default(),
            }));
        }
        self.state
            .as_deref_mut()
            .ok_or_else(|| CommandError::custom("ERR no Lua state"))
    }
}

impl State {
    fn load(&mut self, sha: Sha, source: &[u8]) -> Result<(), CommandError> {
        if self.cache.contains_key(&sha) {
            return Ok(());
        }
        if let Some(script) = self.compiled.remove(&sha) {
            self.cache.insert(sha, script);
            return Ok(());
        }
        let (flags, body) = parse_first_line(source)?;
        let function = self.sandbox.compile_and_keep(body).map_err(|text| {
            self.sandbox.recover();
            let prefix = b"ERR Error compiling script (new function): ";
            CommandError::custom([&prefix[..], &text].concat())
        })?;
        let script = Script {
            function,
            flags,
            source_len: source.len(),
        };
        self.cache.insert(sha, script);
        Ok(())
    }
}

/// Reads a script's first line if it begins with `#!`; the rest is the script, its line end included, so that the lines keep
/// their numbers (eval.c, `evalExtractShebangFlags`).
fn parse_first_line(source: &[u8]) -> Result<(ScriptFlags, &[u8]), CommandError> {
    if !source.starts_with(b"#!") {
        return Ok((ScriptFlags::default(), source));
    }
    let Some((line, body)) = function::first_line(source) else {
        return Err(CommandError::custom("ERR Invalid script shebang"));
    };
    let words = split_words(line).filter(|words| !words.is_empty());
    let words =
        words.ok_or_else(|| CommandError::custom("ERR Invalid engine in script shebang"))?;
    let mut words = words.iter();
    let engine = words.next().map(Vec::as_slice).unwrap_or_default();
    if engine != b"#!lua" {
        return Err(unexpected(b"Unexpected engine in script shebang: ", engine));
    }
    let mut flags = ScriptFlags::DECLARED;
    for word in words {
        let Some(list) = word.strip_prefix(b"flags=") else {
            return Err(unexpected(b"Unknown lua shebang option: ", word));
        };
        if list.is_empty() {
            continue;
        }
        for name in list.split(|byte| *byte == b',') {
            let flag = ScriptFlag::named(name)
                .ok_or_else(|| unexpected(b"Unexpected flag in script shebang: ", name))?;
            flags.insert(flag);
        }
    }
    Ok((flags, body))
}

fn unexpected(text: &[u8], word: &[u8]) -> CommandError {
    CommandError::Custom(Blob::from([b"ERR ", text, word].concat()))
}
