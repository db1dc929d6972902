//! What the sweep's and the explorer's report have in common: a space-time diagram as text and as a page, and the page around it.
//!
//! * [`picture`]: a run as both draw it; [`rows`]: which of its steps are shown, folded or left out; [`told`]: commands and replies in words;
//!   [`cause`]: who is to blame
//! * [`columns`], [`layout`]: for a terminal
//! * [`diagram`], [`page`], [`escape`]: for a browser

pub(crate) mod cause;
pub(crate) mod columns;
pub(crate) mod diagram;
pub(crate) mod escape;
pub(crate) mod layout;
pub(crate) mod page;
pub(crate) mod picture;
pub(crate) mod rows;
pub(crate) mod told;
