//! Members of an object, taken out one by one by name; what is left over is kept.

use serde_json::{Map, Value};

use super::number::lax_integer;
use crate::execution::Unknown;

/// The members of a model's object. Errors are in words; whoever knows the key makes a `Corrupt` of them.
pub(super) struct Members<'n> {
    names: &'n [&'n str],
    values: Vec<Option<Value>>,
    pub(super) unknown: Unknown,
}

impl<'n> Members<'n> {
    pub(super) fn new(object: Map<String, Value>, names: &'n [&'n str]) -> Self {
        let mut members = Self {
            names,
            values: vec![None; names.len()],
            unknown: Unknown::default(),
        };
        let mut known_before = 0;
        for (name, value) in object {
            match names
                .iter()
                .position(|known| *known == name)
                .and_then(|index| members.values.get_mut(index))
            {
                Some(slot) => {
                    *slot = Some(value);
                    known_before += 1;
                }
                None => members.unknown.push(known_before, name, value),
            }
        }
        members
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        let index = self.names.iter().position(|known| *known == name)?;
        self.values.get_mut(index)?.take()
    }

    pub(super) fn text(&mut self, name: &str) -> Result<String, String> {
        self.optional_text(name)?
            .ok_or_else(|| format!("no `{name}`"))
    }

    pub(super) fn text_or_empty(&mut self, name: &str) -> Result<String, String> {
        match self.take(name) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(format!("`{name}` is not text")),
        }
    }

    pub(super) fn optional_text(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.take(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("`{name}` is not text")),
        }
    }

    pub(super) fn map(&mut self, name: &str) -> Result<Map<String, Value>, String> {
        match self.take(name) {
            None => Ok(Map::new()),
            Some(Value::Object(members)) => Ok(members),
            Some(_) => Err(format!("`{name}` is not an object")),
        }
    }

    pub(super) fn array(&mut self, name: &str) -> Result<Vec<Value>, String> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(format!("`{name}` is not an array")),
        }
    }

    pub(super) fn integer(&mut self, name: &str) -> Result<i64, String> {
        let Some(value) = self.take(name) else {
            return Ok(0);
        };
        lax_integer(&value).ok_or_else(|| format!("`{name}` is not an integer"))
    }

    pub(super) fn boolean(&mut self, name: &str) -> Result<bool, String> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(value),
            Some(value) => match lax_integer(&value) {
                Some(0) => Ok(false),
                Some(1) => Ok(true),
                _ => Err(format!("`{name}` is not a boolean")),
            },
        }
    }
}
