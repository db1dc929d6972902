//! Libraries of functions: what `FUNCTION LOAD` keeps and `FCALL` runs (functions.c).
//!
//! They live in a Lua state of their own, made when the first library arrives, so that scripts and functions never see each
//! other's globals.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::function_state::FunctionState;
use super::random::Lrand48;
use super::run::{Invocation, admit, run_in};
use super::{Script, ScriptFlags};
use crate::command::Effects;
use crate::config::Config;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::payload::{self, Compression};
use crate::running::Interlude;
use crate::value::Blob;
use crate::wire::request::split_words;
use crate::wire::{Reply, Request};

/// The name of the one engine there is.
pub(crate) const ENGINE: &str = "LUA";

pub(super) const BAD_NAME: &str = "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long";

/// A function of a library.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub name: Blob,
    pub description: Option<Blob>,
    pub flags: ScriptFlags,
    /// In Lua's registry.
    pub(super) callback: Arc<mlua::RegistryKey>,
}

/// A library, as it was loaded.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    pub name: Blob,
    pub code: Blob,
    pub functions: Vec<Arc<Function>>,
}

/// What becomes of the libraries that there are when others are restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestorePolicy {
    /// They stay; one of the same name is an error.
    Append,
    /// They go.
    Flush,
    /// They stay; one of the same name is replaced.
    Replace,
}

/// Libraries by name, and all their functions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Libraries {
    by_name: BTreeMap<Blob, Library>,
    /// By name in lower case: FCALL finds a function whatever its case.
    functions: BTreeMap<Vec<u8>, Arc<Function>>,
}

impl Libraries {
    fn link(&mut self, library: Library) {
        for function in &library.functions {
            let name = function.name.to_ascii_lowercase();
            self.functions.insert(name, Arc::clone(function));
        }
        self.by_name.insert(library.name.clone(), library);
    }

    fn unlink(&mut self, name: &[u8]) -> Option<Library> {
        let library = self.by_name.remove(name)?;
        for function in &library.functions {
            self.functions.remove(&function.name.to_ascii_lowercase());
        }
        Some(library)
    }

    fn function(&self, name: &[u8]) -> Option<&Arc<Function>> {
        self.functions.get(&name.to_ascii_lowercase())
    }

    /// Links a library unless one of its functions is there already, in another library than that of the same name, which it
    /// replaces.
    fn add(&mut self, library: Library) -> Result<(), CommandError> {
        let old = self.unlink(&library.name);
        let taken = library
            .functions
            .iter()
            .find(|function| self.function(&function.name).is_some());
        let result = match taken {
            Some(function) => Err(already_exists("Function ", &function.name, "")),
            None => Ok(()),
        };
        match (&result, old) {
            (Ok(()), _) => self.link(library),
            (Err(_), Some(old)) => self.link(old),
            (Err(_), None) => {}
        }
        result
    }

    /// Takes in all of another set of libraries, or nothing of it.
    fn join(&mut self, others: Libraries, replace: bool) -> Result<(), CommandError> {
        let mut old = Vec::new();
        let mut result = Ok(());
        for name in others.by_name.keys() {
            if !replace && self.by_name.contains_key(name) {
                result = Err(already_exists("Library ", name, ""));
                break;
            }
            old.extend(self.unlink(name));
        }
        if result.is_ok() {
            let taken = others
                .functions
                .iter()
                .find(|(name, _)| self.functions.contains_key(*name));
            if let Some((_, function)) = taken {
                result = Err(already_exists("Function ", &function.name, ""));
            }
        }
        let linked = if result.is_ok() {
            others.by_name.into_values().collect()
        } else {
            old
        };
        for library in linked {
            self.link(library);
        }
        result
    }
}

/// What loading libraries takes.
pub(super) struct Making<'a> {
    pub random: &'a Arc<Lrand48>,
    pub config: &'a Config,
    /// Knows the time, if that passes.
    pub driver: Option<Arc<dyn Interlude>>,
}

/// All that the server keeps of functions.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    state: Option<Box<FunctionState>>,
    current: Libraries,
    /// The function under way: its name and the request.
    pub running: Option<(Blob, Request)>,
}

impl Functions {
    /// The libraries, by name.
    pub(crate) fn libraries(&self) -> impl ExactSizeIterator<Item = &Library> {
        self.current.by_name.values()
    }

    /// A copy of the libraries.
    #[cfg(feature = "explore")]
    pub(crate) fn copy(&self) -> Libraries {
        self.current.clone()
    }

    /// Has the libraries as they were when they were copied; they must be of the same life.
    #[cfg(feature = "explore")]
    pub(crate) fn go_back_to(&mut self, libraries: Libraries) {
        self.current = libraries;
        self.forget_callbacks();
    }

    /// Number of functions.
    pub(crate) fn len(&self) -> usize {
        self.current.functions.len()
    }

    /// Estimated bytes of the libraries, without what Lua makes of them.
    pub(crate) fn size(&self) -> usize {
        let sizes = self.libraries().map(|library| {
            size_of::<Library>()
                + library.code.len()
                + library.functions.len() * size_of::<Function>()
        });
        sizes.sum()
    }

    /// Bytes that the Lua state holds.
    pub(crate) fn lua_memory(&self) -> usize {
        let state = self.state.as_ref();
        state.map_or(0, |state| state.sandbox.lua.used_memory())
    }

    /// What a function declares.
    pub(crate) fn effects(&self, name: &[u8]) -> Option<Effects> {
        self.current.function(name)?.flags.effects()
    }

    /// Forgets all libraries.
    pub(crate) fn flush(&mut self) {
        self.current = Libraries::default();
        self.forget_callbacks();
    }

    /// Forgets a library; whether there was one.
    pub(crate) fn delete(&mut self, name: &[u8]) -> bool {
        let is_there = self.current.unlink(name).is_some();
        self.forget_callbacks();
        is_there
    }

    /// Lets Lua have back what functions that are gone took.
    fn forget_callbacks(&self) {
        if let Some(state) = &self.state {
            state.sandbox.lua.expire_registry_values();
        }
    }

    /// Loads a library; its name. Errors: its first line is not understood; it does not compile; what it raises; it registers
    /// nothing; there is a library (unless `replace`) or a function of this name.
    pub(super) fn load(
        &mut self,
        making: &Making<'_>,
        code: &[u8],
        replace: bool,
    ) -> Result<Blob, CommandError> {
        let mut current = std::mem::take(&mut self.current);
        let loaded = self.load_into(&mut current, making, code, replace);
        self.current = current;
        self.forget_callbacks();
        loaded
    }

    fn load_into(
        &mut self,
        libraries: &mut Libraries,
        making: &Making<'_>,
        code: &[u8],
        replace: bool,
    ) -> Result<Blob, CommandError> {
        let header = Header::parse(code)?;
        if !is_name(&header.name) {
            return Err(error(BAD_NAME));
        }
        if !header.engine.eq_ignore_ascii_case(ENGINE.as_bytes()) {
            let parts = [b"ERR Engine '", &*header.engine, b"' not found"];
            return Err(CommandError::custom(parts.concat()));
        }
        let name = Blob::from(header.name);
        if !replace && libraries.by_name.contains_key(&name) {
            return Err(already_exists("Library '", &name, "'"));
        }
        let functions = self.state(making)?.load(header.body, making)?;
        if functions.is_empty() {
            return Err(error("No functions registered"));
        }
        libraries.add(Library {
            name: name.clone(),
            code: Blob::from(code),
            functions: functions.into_iter().map(Arc::new).collect(),
        })?;
        Ok(name)
    }

    /// The payload of all libraries.
    pub(crate) fn dump(&self, compression: Compression) -> Vec<u8> {
        let codes = self.libraries().map(|library| &*library.code);
        payload::dump_functions(codes, compression)
    }

    /// Loads what [`Functions::dump`] made. Errors: the payload is not one; those of loading; names that are there already.
    /// Nothing has changed then.
    pub(super) fn restore(
        &mut self,
        making: &Making<'_>,
        payload: &[u8],
        policy: RestorePolicy,
    ) -> Result<(), CommandError> {
        let libraries = payload::verify(payload, making.config.payload_check())
            .ok_or_else(|| error("DUMP payload version or checksum are wrong"))?;
        let mut restored = Libraries::default();
        for code in payload::read_functions(libraries) {
            self.load_into(&mut restored, making, &code.map_err(error)?, false)?;
        }
        let result = match policy {
            RestorePolicy::Flush => {
                self.current = restored;
                Ok(())
            }
            RestorePolicy::Append => self.current.join(restored, false),
            RestorePolicy::Replace => self.current.join(restored, true),
        };
        self.forget_callbacks();
        result
    }

    fn state(&mut self, making: &Making<'_>) -> Result<&mut FunctionState, CommandError> {
        if self.state.is_none() {
            let state = FunctionState::new(Arc::clone(making.random), making.config)
                .map_err(|error| CommandError::custom(format!("ERR {error}")))?;
            self.state = Some(Box::new(state));
        }
        self.state
            .as_deref_mut()
            .ok_or_else(|| CommandError::custom("ERR no Lua state"))
    }
}

/// Runs a function. An error of the function itself is its reply.
///
/// Errors: its flags do not allow it now.
pub(crate) fn call_function(
    engine: &mut Engine,
    function: &Function,
    invocation: &Invocation<'_>,
) -> Result<Reply, CommandError> {
    admit(function.flags, invocation, engine.out_of_memory)?;
    let Some(state) = engine.scripts.functions.state.take() else {
        return Err(error("Function not found"));
    };
    let script = Script {
        function: Arc::clone(&function.callback),
        flags: function.flags,
        source_len: 0,
    };
    let request = invocation.request.clone();
    engine.scripts.functions.running = Some((function.name.clone(), request));
    let reply = run_in(&state.sandbox, engine, &script, &function.name, invocation);
    engine.scripts.functions.running = None;
    engine.scripts.functions.state = Some(state);
    Ok(reply)
}

/// The function of a name, in any case. Errors: there is none.
pub(crate) fn find_function(engine: &Engine, name: &[u8]) -> Result<Arc<Function>, CommandError> {
    let found = engine.scripts.functions.current.function(name);
    found.cloned().ok_or_else(|| error("Function not found"))
}

/// The first line of a library, `#!lua name=mylib`, and what follows it, line end included.
struct Header<'a> {
    engine: Vec<u8>,
    name: Vec<u8>,
    body: &'a [u8],
}

impl<'a> Header<'a> {
    fn parse(code: &'a [u8]) -> Result<Header<'a>, CommandError> {
        if !code.starts_with(b"#!") {
            return Err(error("Missing library metadata"));
        }
        let (line, body) = first_line(code).ok_or_else(|| error("Invalid library metadata"))?;
        let words = split_words(line).filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| error("Invalid library metadata"))?;
        let mut words = words.into_iter();
        let engine = words.next().unwrap_or_default();
        let mut name = None;
        for word in words {
            let value = match word.split_at_checked(5) {
                Some((option, value)) if option.eq_ignore_ascii_case(b"name=") => value,
                _ => {
                    let parts = [b"ERR Invalid metadata value given: ", &*word];
                    return Err(CommandError::custom(parts.concat()));
                }
            };
            if name.is_some() {
                return Err(error(
                    "Invalid metadata value, name argument was given multiple times",
                ));
            }
            name = Some(value.to_vec());
        }
        Ok(Header {
            engine: engine.get(2..).unwrap_or_default().to_vec(),
            name: name.ok_or_else(|| error("Library name was not given"))?,
            body,
        })
    }
}

/// The first line, and what follows, line end included; C looks for the end up to the first zero byte.
pub(super) fn first_line(code: &[u8]) -> Option<(&[u8], &[u8])> {
    match memchr::memchr2(b'\n', 0, code) {
        Some(end) if code.get(end) == Some(&b'\n') => code.split_at_checked(end),
        _ => None,
    }
}

/// Whether libraries and functions may be called this.
pub(super) fn is_name(name: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    !name.is_empty() && name.iter().all(is_letter)
}

fn error(text: &str) -> CommandError {
    CommandError::custom(format!("ERR {text}"))
}

fn already_exists(kind: &str, name: &[u8], quote: &str) -> CommandError {
    let parts: [&[u8]; 5] = [
        b"ERR ",
        kind.as_bytes(),
        name,
        quote.as_bytes(),
        b" already exists",
    ];
    CommandError::custom(parts.concat())
}
