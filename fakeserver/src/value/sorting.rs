//! The first items of a sorted slice, with equal ones in the order in which Redis leaves them (pqsort.c).

use std::cmp::Ordering;
use std::ops::Range;

/// Fewer items than this are sorted by insertion.
const INSERTED_MAX: usize = 7;
/// From more items than this on, nine are looked at for the one to divide by.
const MANY: usize = 40;

/// Sorts a slice as far as its first `wanted` items, which are those that come first; the rest is in any order.
///
/// It is the quicksort of Bentley and `McIlroy` ("Engineering a sort function") that leaves out parts which nobody wants.
pub fn sort_front<T>(items: &mut [T], wanted: usize, compare: impl Fn(&T, &T) -> Ordering) {
    // Parts are disjoint, so that their order does not matter; a list of them is not as deep as calls would be.
    let mut parts = Vec::new();
    parts.push(0..items.len());
    while let Some(part) = parts.pop() {
        let start = part.start;
        let Some(slice) = items.get_mut(part) else {
            continue;
        };
        if slice.len() < INSERTED_MAX {
            insert(slice, &compare);
            continue;
        }
        for side in divide(slice, &compare) {
            if side.len() > 1 && start + side.start < wanted {
                parts.push(start + side.start..start + side.end);
            }
        }
    }
}

fn insert<T>(items: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) {
    for end in 1..items.len() {
        let mut at = end;
        while at > 0 && compare(&items[at - 1], &items[at]).is_gt() {
            items.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// Divides at least seven items by one of them; where those are that come before it, and those that come behind.
fn divide<T>(items: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) -> [Range<usize>; 2] {
    let len = items.len();
    let pivot = pivot(items, compare);
    items.swap(0, pivot);
    // Items that equal the first one are collected at both ends: before `left_equal`, and behind `right_equal`.
    let (mut left_equal, mut left) = (1, 1);
    let (mut right, mut right_equal) = (len - 1, len - 1);
    loop {
        while left <= right {
            match compare(&items[left], &items[0]) {
                Ordering::Greater => break,
                Ordering::Equal => {
                    items.swap(left_equal, left);
                    left_equal += 1;
                }
                Ordering::Less => {}
            }
            left += 1;
        }
        while left <= right {
            match compare(&items[right], &items[0]) {
                Ordering::Less => break,
                Ordering::Equal => {
                    items.swap(right, right_equal);
                    right_equal -= 1;
                }
                Ordering::Greater => {}
            }
            right -= 1;
        }
        if left > right {
            break;
        }
        items.swap(left, right);
        left += 1;
        right -= 1;
    }
    let (before, behind) = (left - left_equal, right_equal - right);
    swap_ranges(items, 0, left, left_equal.min(before));
    swap_ranges(items, left, len, behind.min(len - 1 - right_equal));
    [0..before, len - behind..len]
}

/// Swaps the items from `start` on with as many before `end`.
fn swap_ranges<T>(items: &mut [T], start: usize, end: usize, len: usize) {
    for at in 0..len {
        items.swap(start + at, end - len + at);
    }
}

/// The item to divide by: the middle one, or the median of three or of three medians.
fn pivot<T>(items: &[T], compare: &impl Fn(&T, &T) -> Ordering) -> usize {
    let (len, middle) = (items.len(), items.len() / 2);
    let median = |a: usize, b: usize, c: usize| {
        let order = |one: usize, other: usize| compare(&items[one], &items[other]);
        if order(a, b).is_lt() {
            match () {
                () if order(b, c).is_lt() => b,
                () if order(a, c).is_lt() => c,
                () => a,
            }
        } else {
            match () {
                () if order(b, c).is_gt() => b,
                () if order(a, c).is_lt() => a,
                () => c,
            }
        }
    };
    if len == INSERTED_MAX {
        return middle;
    }
    let (first, last) = (0, len - 1);
    if len <= MANY {
        return median(first, middle, last);
    }
    let step = len / 8;
    median(
        median(first, first + step, first + 2 * step),
        median(middle - step, middle, middle + step),
        median(last - 2 * step, last - step, last),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_items_are_sorted() {
        let mut rng = fastrand::Rng::with_seed(5);
        for round in 0..2000 {
            let items: Vec<u8> = (0..rng.usize(0..200))
                .map(|_| rng.u8(0..round as u8 | 3))
                .collect();
            let wanted = rng.usize(0..=items.len());
            let (mut sorted, mut front) = (items.clone(), items);
            sorted.sort_unstable();
            sort_front(&mut front, wanted, Ord::cmp);
            assert_eq!(front[..wanted], sorted[..wanted]);
            front.sort_unstable();
            assert_eq!(front, sorted);
        }
    }
}
