//! [`Habits`]: which parts of a program's commands differ from run to run; [`Labels`]: the names that they get in one run.
//!
//! A random part is named after who sent it first and where, `<A.1>`, so that a lock in the wrong hands looks different from one in
//! the right hands, whatever its token is this time.

use std::collections::{BTreeMap, BTreeSet};

use super::atoms::{atoms, is_time};
use super::schedule::Role;
use super::step::Step;
use crate::command::lookup;
use crate::footprint::key_positions;
use crate::wire::Request;

/// Shortest whole argument that is looked for inside of other texts.
const WHOLE_LEN_MIN: usize = 6;

/// Shortest number that is named.
const NUMBER_LEN_MIN: usize = 5;

/// A place in a program's commands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Spot {
    role: Role,
    name: Vec<u8>,
    /// The key of the command, without which one `SET` is like the other.
    key: Option<Pattern>,
    argument: usize,
    part: Part,
}

/// Atoms of a key; none where they are numbers, or differ between equal runs.
type Pattern = Vec<Option<Vec<u8>>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Atom(usize),
    Whole,
}

/// Places whose content differs between equal runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Habits {
    spots: BTreeSet<Spot>,
    /// What equal runs have in common is not random, wherever it stands.
    constants: BTreeSet<Vec<u8>>,
}

impl Habits {
    /// Learns from two equal runs.
    pub(super) fn learn(&mut self, one: &[Step], other: &[Step]) {
        let common = all_pieces(one)
            .intersection(&all_pieces(other))
            .cloned()
            .collect();
        self.constants = std::mem::take(&mut self.constants)
            .union(&common)
            .cloned()
            .collect();
        for role in Role::ALL {
            let of = |steps: &'_ [Step]| -> Vec<Step> {
                let own = steps.iter().filter(|step| step.role == Some(role));
                own.cloned().collect()
            };
            for (one, other) in of(one).iter().zip(&of(other)) {
                let (one, other) = (&one.request, &other.request);
                if !one.name().eq_ignore_ascii_case(other.name()) || one.len() != other.len() {
                    break;
                }
                let key = pattern(one, other);
                let words = one.words().zip(other.words()).enumerate();
                for (argument, (left, right)) in words.filter(|(_, (left, right))| left != right) {
                    for part in differing(left, right) {
                        self.spots.insert(Spot {
                            role,
                            name: one.name().to_ascii_uppercase(),
                            key: key.clone(),
                            argument,
                            part,
                        });
                    }
                }
            }
        }
    }

    /// Whether a part is the same in equal runs after all.
    fn is_constant(&self, word: &[u8], part: Part) -> bool {
        match part {
            Part::Whole => self.constants.contains(word),
            Part::Atom(at) => {
                let piece = pieces(word).get(at).copied().unwrap_or_default();
                self.constants.contains(piece)
            }
        }
    }

    /// The places that an argument is, with their numbers.
    fn parts(&self, role: Role, request: &Request, argument: usize) -> Vec<(usize, Part)> {
        let name = request.name().to_ascii_uppercase();
        let is_here = |spot: &&Spot| {
            spot.role == role
                && spot.name == name
                && spot.argument == argument
                && fits(spot.key.as_ref(), request)
        };
        let own = self.spots.iter().filter(|spot| spot.role == role);
        let numbered = own.enumerate().filter(|(_, spot)| is_here(spot));
        numbered.map(|(at, spot)| (at + 1, spot.part)).collect()
    }
}

/// What the keys of two equal commands have in common.
fn pattern(one: &Request, other: &Request) -> Option<Pattern> {
    let (left, right) = (first_key(one)?, first_key(other)?);
    let (lefts, rights) = (pieces(left), pieces(right));
    if lefts.len() != rights.len() {
        return None;
    }
    let common = |(left, right): (&[u8], &[u8])| {
        let is_number = left.iter().all(u8::is_ascii_digit);
        (left == right && !is_number).then(|| left.to_vec())
    };
    Some(lefts.into_iter().zip(rights).map(common).collect())
}

fn fits(pattern: Option<&Pattern>, request: &Request) -> bool {
    let (Some(pattern), Some(key)) = (pattern, first_key(request)) else {
        return true;
    };
    let atoms = pieces(key);
    let same =
        |(known, atom): (&Option<Vec<u8>>, &[u8])| known.as_ref().is_none_or(|known| known == atom);
    pattern.len() == atoms.len() && pattern.iter().zip(atoms).all(same)
}

/// Arguments and their atoms.
fn all_pieces(steps: &[Step]) -> BTreeSet<Vec<u8>> {
    let words = steps.iter().flat_map(|step| step.request.words());
    let parts = words.flat_map(|word| pieces(word).into_iter().chain([word]));
    parts.map(<[u8]>::to_vec).collect()
}

fn pieces(text: &[u8]) -> Vec<&[u8]> {
    let ranges = atoms(text).into_iter();
    ranges
        .map(|range| text.get(range).unwrap_or_default())
        .collect()
}

fn first_key(request: &Request) -> Option<&[u8]> {
    let positions = key_positions(lookup(request.name())?, request);
    let (at, _) = positions.into_iter().min()?;
    request.get(at)
}

/// Which parts of two texts differ.
fn differing(left: &[u8], right: &[u8]) -> Vec<Part> {
    let (lefts, rights) = (atoms(left), atoms(right));
    if lefts.len() != rights.len() {
        return vec![Part::Whole];
    }
    let pairs = lefts.into_iter().zip(rights).enumerate();
    let differ = pairs.filter(|(_, (l, r))| left.get(l.clone()) != right.get(r.clone()));
    let parts: Vec<_> = differ.map(|(at, _)| Part::Atom(at)).collect();
    if parts.is_empty() {
        return vec![Part::Whole];
    }
    parts
}

/// The names of one run's random parts.
#[derive(Clone, Debug)]
pub(super) struct Labels {
    atoms: BTreeMap<Vec<u8>, String>,
    wholes: Vec<(Vec<u8>, String)>,
    now_seconds: f64,
}

impl Labels {
    /// Names what the habits say is random, in the order in which it was sent. `now` is the machine's time, in seconds.
    pub(super) fn of(habits: &Habits, steps: &[Step], now_seconds: f64) -> Labels {
        let mut labels = Labels {
            atoms: BTreeMap::new(),
            wholes: Vec::new(),
            now_seconds,
        };
        let mut counts = BTreeMap::new();
        for step in steps {
            let Some(role) = step.role else {
                continue;
            };
            for (at, word) in step.request.words().enumerate() {
                for (spot, part) in habits.parts(role, &step.request, at) {
                    if habits.is_constant(word, part) {
                        continue;
                    }
                    labels.name(word, part, (role, spot), &mut counts);
                }
            }
        }
        labels
    }

    /// The same names for all: what is random is random.
    pub(super) fn without_owners(mut self) -> Labels {
        let names = self.wholes.iter_mut().map(|(_, name)| name);
        for name in names.chain(self.atoms.values_mut()) {
            "<random>".clone_into(name);
        }
        self
    }

    /// Names a random part after its place, so that other parts before it, of a retry for example, do not change its name.
    fn name(
        &mut self,
        word: &[u8],
        part: Part,
        (role, spot): (Role, usize),
        counts: &mut BTreeMap<(Role, usize), usize>,
    ) {
        let mut next = || {
            let count = counts.entry((role, spot)).or_default();
            *count += 1;
            let letter = match role {
                Role::A => "A",
                Role::B => "B",
                Role::C => "C",
                Role::D => "D",
                Role::E => "E",
                Role::Setup => "S",
                Role::After => "Z",
            };
            match count {
                1 => format!("<{letter}.{spot}>"),
                more => format!("<{letter}.{spot}-{more}>"),
            }
        };
        match part {
            Part::Atom(at) => {
                let ranges = atoms(word);
                let Some(atom) = ranges.get(at).and_then(|range| word.get(range.clone())) else {
                    return;
                };
                // A short number may stand anywhere else too, and mean something else there.
                let is_short = atom.len() < NUMBER_LEN_MIN && atom.iter().all(u8::is_ascii_digit);
                if !is_short && !is_time(atom, self.now_seconds) && !self.atoms.contains_key(atom) {
                    self.atoms.insert(atom.to_vec(), next());
                }
            }
            Part::Whole => {
                let known = self.wholes.iter().any(|(whole, _)| whole == word);
                if word.len() >= WHOLE_LEN_MIN && !known {
                    self.wholes.push((word.to_vec(), next()));
                }
            }
        }
    }

    /// A text with its random parts named, and its times left out.
    pub(super) fn apply(&self, text: &[u8]) -> Vec<u8> {
        let mut text = std::borrow::Cow::Borrowed(text);
        for (whole, name) in &self.wholes {
            if memchr::memmem::find(&text, whole).is_some() {
                text = replaced(&text, whole, name.as_bytes()).into();
            }
        }
        let mut named = Vec::with_capacity(text.len());
        let mut done = 0;
        for range in atoms(&text) {
            let atom = text.get(range.clone()).unwrap_or_default();
            let name = if is_time(atom, self.now_seconds) {
                Some("<time>")
            } else {
                self.atoms.get(atom).map(String::as_str)
            };
            if let Some(name) = name {
                named.extend_from_slice(text.get(done..range.start).unwrap_or_default());
                named.extend_from_slice(name.as_bytes());
                done = range.end;
            }
        }
        named.extend_from_slice(text.get(done..).unwrap_or_default());
        named
    }
}

fn replaced(text: &[u8], what: &[u8], by: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut done = 0;
    for at in memchr::memmem::find_iter(text, what) {
        out.extend_from_slice(text.get(done..at).unwrap_or_default());
        out.extend_from_slice(by);
        done = at + what.len();
    }
    out.extend_from_slice(text.get(done..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: f64 = 1_700_000_000.0;

    fn steps(role: Role, commands: &[&str]) -> Vec<Step> {
        let step = |text: &&str| {
            let mut step = Step::event(String::new(), Request::new(text.split(' ')));
            step.role = Some(role);
            step
        };
        commands.iter().map(step).collect()
    }

    #[test]
    fn a_token_is_named_after_its_owner() {
        let mut habits = Habits::default();
        habits.learn(
            &steps(Role::A, &["SET lock 11aa NX", "GET job:1"]),
            &steps(Role::A, &["SET lock 22bb NX", "GET job:1"]),
        );
        let run = steps(Role::A, &["SET lock ffee NX", "GET job:1"]);
        let labels = Labels::of(&habits, &run, NOW);
        assert_eq!(labels.apply(b"owner=ffee, job:1"), b"owner=<A.1>, job:1");
        assert_eq!(labels.apply(b"ffeeX"), b"ffeeX");
    }

    #[test]
    fn a_token_under_one_key_says_nothing_of_other_keys() {
        let mut habits = Habits::default();
        habits.learn(
            &steps(Role::A, &["SET lock:7 11aa", "SET balance:7 130"]),
            &steps(Role::A, &["SET lock:7 22bb", "SET balance:7 130"]),
        );
        let run = steps(Role::A, &["SET lock:8 ffee", "SET balance:7 135"]);
        let labels = Labels::of(&habits, &run, NOW);
        assert_eq!(labels.apply(b"ffee 135"), b"<A.1> 135");
    }

    #[test]
    fn what_equal_runs_have_in_common_is_not_random() {
        let mut habits = Habits::default();
        habits.learn(
            &steps(
                Role::A,
                &["HSET job:1 at 11aa1", "HSET job:1 status queued"],
            ),
            &steps(
                Role::A,
                &["HSET job:1 at 22bb2", "HSET job:1 status queued"],
            ),
        );
        let run = steps(
            Role::A,
            &["HSET job:1 at 33cc3", "HSET job:1 status queued"],
        );
        let labels = Labels::of(&habits, &run, NOW);
        assert_eq!(labels.apply(b"33cc3 queued"), b"<A.1> queued");
    }

    #[test]
    fn a_retry_does_not_rename_what_follows() {
        let mut habits = Habits::default();
        habits.learn(
            &steps(Role::A, &["SET try 11aa1", "SET job 22bb2"]),
            &steps(Role::A, &["SET try 33cc3", "SET job 44dd4"]),
        );
        let of = |commands: &[&str]| Labels::of(&habits, &steps(Role::A, commands), NOW);
        let once = of(&["SET try 55ee5", "SET job 66ff6"]);
        let twice = of(&["SET try 55ee5", "SET try 77aa7", "SET job 66ff6"]);
        assert_eq!(once.apply(b"66ff6"), twice.apply(b"66ff6"));
        assert_eq!(twice.apply(b"55ee5 77aa7"), b"<A.2> <A.2-2>");
    }

    #[test]
    fn what_has_no_parts_in_common_is_named_whole() {
        let mut habits = Habits::default();
        habits.learn(
            &steps(Role::B, &["RPUSH q a-b-cdef"]),
            &steps(Role::B, &["RPUSH q abc-defg"]),
        );
        let labels = Labels::of(&habits, &steps(Role::B, &["RPUSH q x.y.z.123"]), NOW);
        assert_eq!(labels.apply(b"[x.y.z.123]"), b"[<B.1>]");
    }

    #[test]
    fn times_are_left_out_unlearned() {
        let labels = Labels::of(&Habits::default(), &[], NOW);
        assert_eq!(labels.apply(b"at 1700000012.5 n 5"), b"at <time> n 5");
    }
}
