//! Rows of the neutral model.

use serde::{Serialize, de::DeserializeOwned};

use super::{
    Surrogates, WRITE_DEPTH_MAX, depth,
    members::Members,
    model::status,
    object,
    print::{Printer, Spelling},
    strict,
};
use crate::{Instance, Rejection, Status, StoreError, Version};

const INSTANCE: [&str; 6] = [
    "id",
    "definition_id",
    "status",
    "parent_id",
    "state",
    "version",
];

/// The row of an instance at this version, which need not be the one that it carries.
///
/// # Errors
/// [`StoreError::Invalid`] for a state that JSON can not say, or that is nested too deeply.
pub fn encode_instance<S: Serialize>(
    instance: &Instance<S>,
    version: Version,
) -> Result<String, StoreError> {
    let invalid = |reason| StoreError::Invalid {
        what: "state",
        reason,
    };
    let state = strict::to_value(&instance.state).map_err(invalid)?;
    if depth(&state) >= WRITE_DEPTH_MAX {
        return Err(invalid(Rejection::TooDeep));
    }
    let mut printer = Printer::new(Spelling::Compact);
    let mut row = printer.object_keeping(&instance.unknown);
    row.text("id", &instance.id);
    row.text("definition_id", &instance.definition_id);
    row.text("status", instance.status.as_str());
    row.optional_text("parent_id", instance.parent_id.as_deref());
    row.value("state", &state);
    row.integer("version", version.get());
    row.end();
    Ok(printer.finish())
}

/// The instance in a row.
///
/// As lax as [`decode_execution`](super::decode_execution), but that there must be a `state` of the type asked for.
///
/// # Errors
/// What is wrong with the row, in words that do not repeat its values.
pub fn decode_instance<S: DeserializeOwned>(row: &[u8]) -> Result<Instance<S>, String> {
    let mut members = Members::new(object(row, Surrogates::Refuse)?, &INSTANCE);
    let (id, definition_id) = (members.text("id")?, members.text("definition_id")?);
    let state = members.take("state").ok_or("no `state`")?;
    // The error's own words quote what they do not like.
    let state = serde_json::from_value(state)
        .map_err(|_| "`state` is not of the type that is asked for".to_owned())?;
    let mut instance = Instance::new(id, definition_id, state);
    instance.status = members
        .take("status")
        .map_or(Ok(Status::default()), |value| status(&value))?;
    instance.parent_id = members.optional_text("parent_id")?;
    instance.version = Version::new(members.integer("version")?);
    instance.unknown = members.unknown;
    Ok(instance)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::codec::decode_summary;

    fn spelled<S: Serialize>(state: S) -> Result<String, Rejection> {
        let row = encode_instance(&Instance::new("a", "d", state), Version::new(1));
        row.map_err(|error| match error {
            StoreError::Invalid { reason, .. } => reason,
            error => panic!("{error}"),
        })
    }

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1.5), |inner, _| Value::Array(vec![inner]))
    }

    #[test]
    fn a_row_is_compact_with_the_version_last_and_read_back() {
        let row = spelled(json!({"n": 1e16, "u": "\u{e9}", "big": 12_345_678_901_234_567_890_u64}))
            .unwrap();
        assert_eq!(
            row,
            "{\"id\":\"a\",\"definition_id\":\"d\",\"status\":\"PENDING\",\"parent_id\":null,\"state\":{\"n\":1e+16,\"u\":\"\u{e9}\",\"big\":12345678901234567890},\"version\":1}"
        );
        let read: Instance<Value> = decode_instance(row.as_bytes()).unwrap();
        assert_eq!(encode_instance(&read, read.version).unwrap(), row);
        let summary = decode_summary(row.as_bytes()).unwrap();
        assert_eq!((&*summary.id, summary.version.get()), ("a", 1));
    }

    #[test]
    fn members_that_are_not_known_keep_their_places() {
        let row = r#"{"x":1,"id":"a","definition_id":"d","status":"DONE","parent_id":"p","y":[],"state":null,"version":3,"z":{}}"#;
        let read: Instance<Option<u8>> = decode_instance(row.as_bytes()).unwrap();
        assert_eq!(encode_instance(&read, read.version).unwrap(), row);
    }

    #[test]
    fn what_json_can_not_say_is_refused_wherever_it_is() {
        for state in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(spelled(state), Err(Rejection::NotFinite));
            assert_eq!(spelled(vec![Some((1, state))]), Err(Rejection::NotFinite));
            assert_eq!(
                spelled(BTreeMap::from([("k", state as f32)])),
                Err(Rejection::NotFinite)
            );
            assert_eq!(
                spelled(Shape::Struct { x: state }),
                Err(Rejection::NotFinite)
            );
            assert_eq!(spelled(Shape::Tuple(1, state)), Err(Rejection::NotFinite));
            assert_eq!(spelled(Shape::Newtype(state)), Err(Rejection::NotFinite));
        }
        assert_eq!(
            spelled(BTreeMap::from([(vec![1], 1)])),
            Err(Rejection::NotJson)
        );
        assert!(spelled(Shape::Unit).unwrap().contains(r#""state":"Unit","#));
    }

    #[derive(Serialize)]
    enum Shape {
        Unit,
        Newtype(f64),
        Tuple(u8, f64),
        Struct { x: f64 },
    }

    #[test]
    fn depth_has_its_last_good_value_and_no_depth_overflows_the_stack() {
        assert!(spelled(nested(198)).is_ok());
        assert_eq!(spelled(nested(199)), Err(Rejection::TooDeep));
        let mut deep = nested(100_000);
        assert_eq!(spelled(&deep), Err(Rejection::TooDeep));
        // Taken apart level by level: dropping it as a whole would recurse.
        while let Value::Array(mut items) = deep {
            deep = items.pop().unwrap_or_default();
        }
    }

    #[test]
    fn a_state_of_another_type_is_named_without_its_values() {
        let row = br#"{"id":"a","definition_id":"d","state":"secret","version":3}"#;
        let error = decode_instance::<u8>(row).unwrap_err();
        assert!(!error.contains("secret"), "{error}");
        assert!(decode_instance::<u8>(br#"{"id":"a","definition_id":"d"}"#).is_err());
    }
}
