//! [`Instance`]: a document whose state is any type of the caller's.

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Document, Forkable, RowTail, Settings, Status, StoreError, Unknown, Version, codec,
    op::validate,
};

/// One run of a definition, with a state of the caller's own type.
///
/// Its row is `{"id":..,"definition_id":..,"status":..,"parent_id":..,"state":..,"version":N}`; listings show it like an
/// [`Execution`](crate::Execution). Members that it does not know are kept in their places.
///
/// The state may be anything that JSON can say: a float that is not finite, a map whose keys are not text, or nesting beyond
/// [`codec::WRITE_DEPTH_MAX`] is refused when it is stored, wherever in the state it is.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use store::{Document, Instance, Settings};
///
/// #[derive(Serialize, Deserialize)]
/// struct Cart {
///     items: Vec<String>,
///     total: f64,
/// }
///
/// let cart = Cart { items: vec!["tea".to_owned()], total: 4.5 };
/// let cart = Instance::new("cart-7", "cart", cart);
/// assert_eq!(
///     cart.encode(cart.version, &Settings::default())?,
///     r#"{"id":"cart-7","definition_id":"cart","status":"PENDING","parent_id":null,"state":{"items":["tea"],"total":4.5},"version":0}"#
/// );
/// # Ok::<(), store::StoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Instance<S> {
    /// Its name; part of key names, so it has no NUL and does not begin with `seq:`.
    pub id: String,
    /// Which definition it runs.
    pub definition_id: String,
    /// Where it stands.
    pub status: Status,
    /// The instance that started this one.
    pub parent_id: Option<String>,
    /// The caller's data.
    pub state: S,
    /// The version of the row that this was loaded from. Only a commit that is known to have landed changes it.
    pub version: Version,
    /// Members written by others.
    pub unknown: Unknown,
    tail: RowTail,
}

impl<S> Instance<S> {
    /// A new instance at version 0, without a parent.
    pub fn new(id: impl Into<String>, definition_id: impl Into<String>, state: S) -> Self {
        Self {
            id: id.into(),
            definition_id: definition_id.into(),
            status: Status::Pending,
            parent_id: None,
            state,
            version: Version::NEW,
            unknown: Unknown::default(),
            tail: RowTail::default(),
        }
    }
}

impl<S: Serialize + DeserializeOwned> Document for Instance<S> {
    fn id(&self) -> &str {
        &self.id
    }

    fn version(&self) -> Version {
        self.version
    }

    fn set_version(&mut self, version: Version) {
        self.version = version;
    }

    /// The state is looked at when it is spelled.
    fn validate(&self, _: &Settings) -> Result<(), StoreError> {
        let mut unknown = self.unknown.iter();
        unknown.try_for_each(|(_, value)| validate::depth("instance", 1 + codec::depth(value)))
    }

    fn encode(&self, version: Version, _: &Settings) -> Result<String, StoreError> {
        codec::encode_instance(self, version)
    }

    fn decode(row: &[u8], _: &Settings) -> Result<Self, String> {
        codec::decode_instance(row)
    }

    fn is_finished(&self) -> bool {
        self.status.is_finished()
    }

    fn status(&self) -> Option<Status> {
        Some(self.status)
    }

    fn tail(&self) -> RowTail {
        self.tail.clone()
    }

    fn remember(&mut self, tail: RowTail) {
        self.tail = tail;
    }
}

impl<S: Serialize + DeserializeOwned + Clone> Forkable for Instance<S> {
    fn forked(&self, id: &str) -> Self {
        let mut fork = self.clone();
        id.clone_into(&mut fork.id);
        fork.parent_id = None;
        fork
    }
}
