//! [`Document`]: what a commit replaces, and [`RowTail`], by which its version is found again without reading all of it.

use std::{fmt, sync::Arc};

use crate::{Execution, Settings, Status, StoreError, Version, codec, op::validate};

/// A document that is stored as one row with its version inside: [`Execution`], [`Instance`](crate::Instance), or a type of
/// one's own.
///
/// # What an implementation must keep
/// * The row is a JSON object in UTF-8 with a top-level integer member `version`, and `id`, `definition_id`, `status` if it
///   is to be listed.
/// * [`decode`](Document::decode) of what [`encode`](Document::encode) wrote is the same document at that version.
/// * Nothing that JSON can not say is left out or changed in silence: `encode` refuses it.
pub trait Document {
    /// Its name; part of key names.
    fn id(&self) -> &str;

    /// The version of the row that it was loaded from; [`Version::NEW`] if it never was.
    fn version(&self) -> Version;

    /// Notes the version of the row that a commit has made. Called only if the commit is known to have landed.
    fn set_version(&mut self, version: Version);

    /// Refuses a document that can not be stored without breaking a guarantee. The id is checked by the store itself.
    ///
    /// # Errors
    /// [`StoreError::Invalid`].
    fn validate(&self, settings: &Settings) -> Result<(), StoreError>;

    /// The row at this version, which need not be the one that it carries.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if it has no spelling in JSON.
    fn encode(&self, version: Version, settings: &Settings) -> Result<String, StoreError>;

    /// The document in a row.
    ///
    /// # Errors
    /// What is wrong with the row, in words.
    fn decode(row: &[u8], settings: &Settings) -> Result<Self, String>
    where
        Self: Sized;

    /// Whether it has ended, so that [`Settings::retain_finished`](crate::Settings::retain_finished) applies to it.
    fn is_finished(&self) -> bool {
        false
    }

    /// Where it stands, if it is of a kind that knows; a worker asks before it handles an event.
    fn status(&self) -> Option<Status> {
        None
    }

    /// The end of the row that it was read from or written as, as [`remember`](Document::remember) was told. Without it a
    /// commit is as safe, but the server has to read the whole row.
    fn tail(&self) -> RowTail {
        RowTail::default()
    }

    /// Keeps the end of its row.
    fn remember(&mut self, tail: RowTail) {
        drop(tail);
    }
}

impl Document for Execution {
    fn id(&self) -> &str {
        &self.id
    }

    fn version(&self) -> Version {
        self.version
    }

    fn set_version(&mut self, version: Version) {
        self.version = version;
    }

    fn validate(&self, _: &Settings) -> Result<(), StoreError> {
        validate::execution(self)
    }

    fn encode(&self, version: Version, settings: &Settings) -> Result<String, StoreError> {
        Ok(codec::encode_execution_in(
            settings.dialect(),
            self,
            version,
        ))
    }

    fn decode(row: &[u8], _: &Settings) -> Result<Self, String> {
        codec::decode_execution(row)
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

/// A document of which a second one can be made that goes on by itself.
pub trait Forkable: Document + Sized {
    /// The same under another id, without what ties it to others: a parent that waits for it, children that report to it.
    #[must_use]
    fn forked(&self, id: &str) -> Self;
}

impl Forkable for Execution {
    fn forked(&self, id: &str) -> Self {
        let mut fork = self.clone();
        id.clone_into(&mut fork.id);
        fork.parent_id = None;
        fork.child_id = None;
        fork.children.clear();
        fork
    }
}

/// Bytes of a row's end that a document keeps at most: beyond that the comparison costs what it saves.
const TAIL_LEN_MAX: usize = 4096;

/// The end of a row that was read or written, from the separator in front of its version on; or nothing.
///
/// A stored row that is JSON and ends with this text has the version that is in it, whatever else the row holds: the text
/// begins outside of a string (`,"version"` inside of one would end it in front of a bare word), it closes exactly the brace
/// that ends the row (so that its member is a top-level one), and no later member of that name is in it (the last one counts).
///
/// It says nothing about the document, so that all are equal to one another.
#[derive(Clone, Default)]
pub struct RowTail(Option<Arc<Known>>);

struct Known {
    version: Version,
    text: Box<str>,
}

impl RowTail {
    /// Of a row that is known to be JSON and to hold this version.
    pub fn of(row: &[u8], version: Version) -> Self {
        let row = std::str::from_utf8(row).ok();
        row.and_then(codec::version_tail)
            .map_or_else(Self::default, |text| Self::new(text, version))
    }

    pub(crate) fn new(text: &str, version: Version) -> Self {
        let text = (text.len() <= TAIL_LEN_MAX).then(|| text.into());
        Self(text.map(|text| Arc::new(Known { version, text })))
    }

    /// The text, if it is of a row at this version.
    pub fn at(&self, version: Version) -> Option<&str> {
        let known = self.0.as_deref()?;
        (known.version == version).then_some(&*known.text)
    }
}

impl PartialEq for RowTail {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for RowTail {}

impl fmt::Debug for RowTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.0.as_ref().map_or(0, |known| known.text.len());
        write!(f, "RowTail({length} bytes)")
    }
}
