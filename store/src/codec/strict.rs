//! Serializing without silent losses: serde's JSON writes null for a float that is not finite, and recurses without a limit.

use std::cell::Cell;

use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::Value;

use super::WRITE_DEPTH_MAX;
use crate::Rejection;

/// The value as JSON.
///
/// # Errors
/// What JSON can not say.
pub(super) fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, Rejection> {
    let refusal = Cell::new(Rejection::NotJson);
    let strict = Strict {
        inner: serde_json::value::Serializer,
        levels: WRITE_DEPTH_MAX,
        refusal: &refusal,
    };
    value.serialize(strict).map_err(|_| refusal.get())
}

/// Another serializer, or a part of one, that is told everything but what is refused.
struct Strict<'r, S> {
    inner: S,
    /// How many more levels there may be.
    levels: usize,
    /// Why it stopped.
    refusal: &'r Cell<Rejection>,
}

/// A value on its way through the inner serializer, and back to a strict one.
struct Checked<'v, 'r, T: ?Sized> {
    value: &'v T,
    levels: usize,
    refusal: &'r Cell<Rejection>,
}

impl<T: Serialize + ?Sized> Serialize for Checked<'_, '_, T> {
    fn serialize<S: Serializer>(&self, inner: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(Strict {
            inner,
            levels: self.levels,
            refusal: self.refusal,
        })
    }
}

impl<'r, S> Strict<'r, S> {
    fn check<'v, T: ?Sized>(&self, value: &'v T) -> Checked<'v, 'r, T> {
        Checked {
            value,
            levels: self.levels,
            refusal: self.refusal,
        }
    }
}

impl<'r, S: Serializer> Strict<'r, S> {
    fn refuse(&self, reason: Rejection) -> S::Error {
        self.refusal.set(reason);
        S::Error::custom(reason)
    }

    fn finite(&self, number: f64) -> Result<(), S::Error> {
        if number.is_finite() {
            Ok(())
        } else {
            Err(self.refuse(Rejection::NotFinite))
        }
    }

    fn deeper(&self) -> Result<usize, S::Error> {
        let deeper = self.levels.checked_sub(1);
        deeper.ok_or_else(|| self.refuse(Rejection::TooDeep))
    }

    fn part<C>(
        self,
        open: impl FnOnce(S) -> Result<C, S::Error>,
    ) -> Result<Strict<'r, C>, S::Error> {
        let (levels, refusal) = (self.deeper()?, self.refusal);
        Ok(Strict {
            inner: open(self.inner)?,
            levels,
            refusal,
        })
    }
}

impl<'r, S: Serializer> Serializer for Strict<'r, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Strict<'r, S::SerializeSeq>;
    type SerializeTuple = Strict<'r, S::SerializeTuple>;
    type SerializeTupleStruct = Strict<'r, S::SerializeTupleStruct>;
    type SerializeTupleVariant = Strict<'r, S::SerializeTupleVariant>;
    type SerializeMap = Strict<'r, S::SerializeMap>;
    type SerializeStruct = Strict<'r, S::SerializeStruct>;
    type SerializeStructVariant = Strict<'r, S::SerializeStructVariant>;

    fn serialize_f32(self, v: f32) -> Result<S::Ok, S::Error> {
        self.finite(v.into())?;
        self.inner.serialize_f32(v)
    }

    fn serialize_f64(self, v: f64) -> Result<S::Ok, S::Error> {
        self.finite(v)?;
        self.inner.serialize_f64(v)
    }

    fn serialize_bool(self, v: bool) -> Result<S::Ok, S::Error> {
        self.inner.serialize_bool(v)
    }

    fn serialize_i8(self, v: i8) -> Result<S::Ok, S::Error> {
        self.inner.serialize_i8(v)
    }

    fn serialize_i16(self, v: i16) -> Result<S::Ok, S::Error> {
        self.inner.serialize_i16(v)
    }

    fn serialize_i32(self, v: i32) -> Result<S::Ok, S::Error> {
        self.inner.serialize_i32(v)
    }

    fn serialize_i64(self, v: i64) -> Result<S::Ok, S::Error> {
        self.inner.serialize_i64(v)
    }

    fn serialize_i128(self, v: i128) -> Result<S::Ok, S::Error> {
        self.inner.serialize_i128(v)
    }

    fn serialize_u8(self, v: u8) -> Result<S::Ok, S::Error> {
        self.inner.serialize_u8(v)
    }

    fn serialize_u16(self, v: u16) -> Result<S::Ok, S::Error> {
        self.inner.serialize_u16(v)
    }

    fn serialize_u32(self, v: u32) -> Result<S::Ok, S::Error> {
        self.inner.serialize_u32(v)
    }

    fn serialize_u64(self, v: u64) -> Result<S::Ok, S::Error> {
        self.inner.serialize_u64(v)
    }

    fn serialize_u128(self, v: u128) -> Result<S::Ok, S::Error> {
        self.inner.serialize_u128(v)
    }

    fn serialize_char(self, v: char) -> Result<S::Ok, S::Error> {
        self.inner.serialize_char(v)
    }

    fn serialize_str(self, v: &str) -> Result<S::Ok, S::Error> {
        self.inner.serialize_str(v)
    }

    fn serialize_bytes(self, v: &[u8]) -> Result<S::Ok, S::Error> {
        self.inner.serialize_bytes(v)
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        let value = self.check(value);
        self.inner.serialize_some(&value)
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit()
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit_struct(name)
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let value = self.check(value);
        self.inner.serialize_newtype_struct(name, &value)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let mut value = self.check(value);
        value.levels = self.deeper()?;
        self.inner
            .serialize_newtype_variant(name, index, variant, &value)
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        self.part(|inner| inner.serialize_seq(len))
    }

    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, S::Error> {
        self.part(|inner| inner.serialize_tuple(len))
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        self.part(|inner| inner.serialize_tuple_struct(name, len))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        self.part(|inner| inner.serialize_tuple_variant(name, index, variant, len))
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        self.part(|inner| inner.serialize_map(len))
    }

    fn serialize_struct(
        mut self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStruct, S::Error> {
        // A number that keeps its digits passes as a struct of this kind; it is no level.
        let is_number = name.starts_with("$serde_json::");
        self.levels += usize::from(is_number);
        self.part(|inner| inner.serialize_struct(name, len))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        self.part(|inner| inner.serialize_struct_variant(name, index, variant, len))
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// The parts of a compound that have no names; the traits differ in their own name and in that of their method.
macro_rules! nameless_parts {
    ($($compound:ident :: $method:ident),*) => {$(
        impl<S: $compound> $compound for Strict<'_, S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
                let value = self.check(value);
                self.inner.$method(&value)
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.inner.end()
            }
        }
    )*};
}

nameless_parts!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);

impl<S: SerializeMap> SerializeMap for Strict<'_, S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        // The inner one takes scalars only.
        self.inner.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        let value = self.check(value);
        self.inner.serialize_value(&value)
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.inner.end()
    }
}

/// The parts of a compound that have names.
macro_rules! named_parts {
    ($($compound:ident),*) => {$(
        impl<S: $compound> $compound for Strict<'_, S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), S::Error> {
                let value = self.check(value);
                self.inner.serialize_field(name, &value)
            }

            fn skip_field(&mut self, name: &'static str) -> Result<(), S::Error> {
                self.inner.skip_field(name)
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.inner.end()
            }
        }
    )*};
}

named_parts!(SerializeStruct, SerializeStructVariant);
