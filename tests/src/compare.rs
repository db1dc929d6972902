//! [`Order`]: when two replies count as the same.

use crate::frame::Frame;

/// What of a reply is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Order {
    /// Every byte.
    Exact,
    /// Every byte, but the items may come in any order; those of the list in a reply of cursor and list.
    Set,
    /// Every byte, but the pairs of a map or a flat list may come in any order.
    Map,
    /// Every byte, but lists of lists may come in any order, however deep: libraries, and the functions of each.
    Listed,
    /// Integers may differ by so much, since they tell time; all else exactly.
    Near(i64),
    /// Times of stream entries and consumers, in milliseconds, may differ by so much as a loaded machine takes; all else exactly.
    Aged,
    /// The type byte; of an error every byte.
    Kind,
    /// There is no reply yet.
    Silence,
}

impl Order {
    /// Whether `got` counts as `want`.
    pub fn matches(self, want: &Frame, got: &Frame) -> bool {
        match self {
            Order::Exact => want == got,
            // An error is never unordered.
            _ if want.is_error() || got.is_error() => want == got,
            Order::Set => sorted(want, 1) == sorted(got, 1),
            Order::Map => sorted(want, 2) == sorted(got, 2),
            Order::Listed => listed(want) == listed(got),
            Order::Near(by) => match (integer(want), integer(got)) {
                // Negative ones are answers of their own: no key, no deadline.
                (Some(want), Some(got)) if want >= 0 && got >= 0 => want.abs_diff(got) <= by as u64,
                _ => want == got,
            },
            Order::Aged => same_but_age(want, got),
            Order::Kind => want.kind() == got.kind(),
            Order::Silence => false,
        }
    }
}

/// Greater numbers than this are times, or long idle times; smaller ones are counts where no name or place tells otherwise.
const AGE_MIN: i64 = 50_000;

/// What a loaded machine takes between two servers, in milliseconds.
const AGE_SLACK: u64 = 3_000;

fn same_but_age(want: &Frame, got: &Frame) -> bool {
    match (want, got) {
        (Frame::Items(kind, wanted), Frame::Items(other, found)) => {
            // A row of XPENDING: entry, consumer, idle time, count.
            let row = matches!(
                wanted.as_slice(),
                [
                    Frame::Blob(..),
                    Frame::Blob(..),
                    Frame::Line(_),
                    Frame::Line(_)
                ]
            );
            let named = |at: usize| {
                at.checked_sub(1)
                    .and_then(|at| wanted.get(at))
                    .is_some_and(|name| matches!(name, Frame::Blob(_, name) if name == b"idle"))
            };
            kind == other
                && wanted.len() == found.len()
                && wanted
                    .iter()
                    .zip(found)
                    .enumerate()
                    .all(|(at, (want, got))| {
                        same_but_age(want, got) || (named(at) || row && at == 2) && near(want, got)
                    })
        }
        _ if want == got => true,
        _ => integer(want).is_some_and(|want| want >= AGE_MIN) && near(want, got),
    }
}

fn near(want: &Frame, got: &Frame) -> bool {
    match (integer(want), integer(got)) {
        (Some(want), Some(got)) => want.abs_diff(got) <= AGE_SLACK,
        _ => false,
    }
}

fn integer(frame: &Frame) -> Option<i64> {
    match frame {
        Frame::Line(line) => std::str::from_utf8(line.strip_prefix(b":")?)
            .ok()?
            .parse()
            .ok(),
        _ => None,
    }
}

/// The reply with its groups of `group` items in order of their bytes.
fn sorted(frame: &Frame, group: usize) -> Frame {
    match frame {
        // Cursor and list.
        Frame::Items(kind, items)
            if matches!(items.as_slice(), [Frame::Blob(..), Frame::Items(..)]) =>
        {
            Frame::Items(
                *kind,
                items.iter().map(|item| sorted(item, group)).collect(),
            )
        }
        Frame::Items(kind, items) if items.len().is_multiple_of(group) => {
            let mut groups: Vec<&[Frame]> = items.chunks(group).collect();
            groups.sort();
            Frame::Items(*kind, groups.concat())
        }
        other => other.clone(),
    }
}

/// The reply with each list of nothing but lists in order of their bytes.
fn listed(frame: &Frame) -> Frame {
    let Frame::Items(kind, items) = frame else {
        return frame.clone();
    };
    let mut items: Vec<Frame> = items.iter().map(listed).collect();
    if items.iter().all(|item| matches!(item, Frame::Items(..))) {
        items.sort();
    }
    Frame::Items(*kind, items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: &str) -> Frame {
        Frame::parse(bytes.as_bytes()).unwrap().unwrap().0
    }

    #[test]
    fn unordered_replies_match_in_any_order_and_only_then() {
        let (ab, ba) = (frame("*2\r\n:1\r\n:2\r\n"), frame("*2\r\n:2\r\n:1\r\n"));
        assert!(!Order::Exact.matches(&ab, &ba));
        assert!(Order::Set.matches(&ab, &ba));
        assert!(!Order::Map.matches(&ab, &ba));
        assert!(!Order::Set.matches(&ab, &frame("~2\r\n:2\r\n:1\r\n")));
        let scan = "*2\r\n$1\r\n0\r\n*2\r\n:1\r\n:2\r\n";
        let turned = "*2\r\n$1\r\n0\r\n*2\r\n:2\r\n:1\r\n";
        assert!(Order::Set.matches(&frame(scan), &frame(turned)));
        assert!(!Order::Set.matches(&frame(scan), &frame(&turned.replace("0\r\n*", "5\r\n*"))));
    }

    #[test]
    fn times_may_differ_a_little_but_not_in_what_they_mean() {
        assert!(Order::Near(5).matches(&frame(":100\r\n"), &frame(":97\r\n")));
        assert!(!Order::Near(5).matches(&frame(":100\r\n"), &frame(":94\r\n")));
        assert!(!Order::Near(5).matches(&frame(":-1\r\n"), &frame(":-2\r\n")));
        assert!(!Order::Near(5).matches(&frame(":1\r\n"), &frame(":-1\r\n")));
        let pending = "*1\r\n*4\r\n$3\r\n1-1\r\n$1\r\nc\r\n:3\r\n:1\r\n";
        let later = frame(&pending.replace(":3\r", ":9\r"));
        assert!(Order::Aged.matches(&frame(pending), &later));
        assert!(!Order::Aged.matches(&frame(&pending.replace(":3\r", ":90000\r")), &later));
        assert!(!Order::Aged.matches(&frame(&pending.replace(":1\r\n", ":2\r\n")), &later));
        assert!(!Order::Kind.matches(&frame("-A x\r\n"), &frame("-A y\r\n")));
    }
}
