//! What a program has left behind, and what becomes of it on the other server.

use super::Side;
use crate::compare::Order;
use crate::frame::{Frame, printable};

/// Keys of the first database that are looked at.
const KEYS_MAX: usize = 24;

/// A payload of no more than version and checksum holds nothing.
const FOOTER_LEN: usize = 10;

/// The keys of the first database after a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    keys: Vec<Vec<u8>>,
    /// Of each key encoding, digest of its value, and whether it has a deadline.
    facts: Vec<[String; 3]>,
    payloads: Vec<Vec<u8>>,
    /// All libraries.
    functions: Vec<u8>,
}

impl Remains {
    /// Looks at all keys of a server.
    pub fn of(side: &mut Side<'_>) -> Remains {
        let mut keys: Vec<Vec<u8>> = match side.ask(&[request(&[b"KEYS", b"*"])]).pop() {
            Some(Frame::Items(_, items)) => items.into_iter().filter_map(blob).collect(),
            _ => Vec::new(),
        };
        keys.sort();
        keys.truncate(KEYS_MAX);
        let questions = |key: &Vec<u8>| {
            [
                request(&[b"OBJECT", b"ENCODING", key]),
                request(&[b"DEBUG", b"DIGEST-VALUE", key]),
                request(&[b"PTTL", key]),
                request(&[b"DUMP", key]),
            ]
        };
        let questions: Vec<_> = keys.iter().flat_map(questions).collect();
        let mut remains = Remains::default();
        for (key, answers) in keys.into_iter().zip(side.ask(&questions).chunks(4)) {
            let [encoding, digest, deadline, Frame::Blob(_, payload)] = answers else {
                continue;
            };
            let persists = *deadline == Frame::Line(b":-1".to_vec());
            let facts = [
                printable(&encoding.to_bytes()),
                printable(&digest.to_bytes()),
                persists.to_string(),
            ];
            remains.keys.push(key);
            remains.facts.push(facts);
            remains.payloads.push(payload.clone());
        }
        let functions = side.ask(&[request(&[b"FUNCTION", b"DUMP"])]).pop();
        remains.functions = functions.and_then(blob).unwrap_or_default();
        remains
    }

    /// Where two servers hold something else. Errors: a text that tells the key.
    pub fn compare(&self, got: &Remains) -> Result<(), String> {
        if self.keys != got.keys {
            return Err(format!("keys {:?} and {:?}", self.keys, got.keys));
        }
        let facts = self.facts.iter().zip(&got.facts).zip(&self.keys);
        for ((want, got), key) in facts {
            if want != got {
                return Err(format!("{}: wanted {want:?}, got {got:?}", printable(key)));
            }
        }
        Ok(())
    }
}

/// Restores on two empty servers what both of them have dumped, whole and damaged. Errors: a text that tells the payload with
/// which they differ.
pub fn exchange(
    dumped: &[&Remains; 2],
    reference: &mut Side<'_>,
    subject: &mut Side<'_>,
) -> Result<(), String> {
    // The digest of a key with a deadline is another one.
    let whole = |it: &'_ Remains| -> Vec<(Vec<u8>, Option<String>)> {
        let digest =
            |[_, digest, persists]: &[String; 3]| (persists == "true").then(|| digest.clone());
        let digests = it.facts.iter().map(digest);
        it.payloads.iter().cloned().zip(digests).collect()
    };
    let mut payloads: Vec<_> = dumped.iter().flat_map(|it| whole(it)).collect();
    payloads.sort();
    payloads.dedup();
    let mut requests = Vec::new();
    for (at, (payload, _)) in payloads.iter().enumerate() {
        let key = at.to_string().into_bytes();
        let mut damaged = payload.clone();
        if let Some(byte) = damaged.get_mut(at % payload.len().max(1)) {
            *byte ^= 1;
        }
        requests.extend([
            request(&[b"RESTORE", &key, b"0", &damaged]),
            request(&[b"RESTORE", &key, b"0", payload]),
            request(&[b"OBJECT", b"ENCODING", &key]),
            request(&[b"DEBUG", b"DIGEST-VALUE", &key]),
            request(&[b"XINFO", b"STREAM", &key, b"FULL"]),
        ]);
    }
    let (want, got) = (reference.ask(&requests), subject.ask(&requests));
    for (at, ((words, want), got)) in requests.iter().zip(&want).zip(&got).enumerate() {
        let (payload, digest) = &payloads[at / 5];
        let (wanted, got_text) = (printable(&want.to_bytes()), printable(&got.to_bytes()));
        let words: Vec<String> = words.iter().map(|word| printable(word)).collect();
        let what = format!("{} with {}", words.join(" "), printable(payload));
        if !Order::Aged.matches(want, got) {
            return Err(format!("{what}: wanted {wanted:?}, got {got_text:?}"));
        }
        if let Some(digest) = digest
            .as_ref()
            .filter(|digest| at % 5 == 3 && **digest != wanted)
        {
            return Err(format!(
                "{what}: the key dumped had {digest}, the restored one has {wanted}"
            ));
        }
    }
    exchange_functions(dumped, reference, subject)
}

/// Restores the libraries that either server has dumped, whole and damaged, on both of them.
fn exchange_functions(
    dumped: &[&Remains; 2],
    reference: &mut Side<'_>,
    subject: &mut Side<'_>,
) -> Result<(), String> {
    for payload in dumped.map(|it| &it.functions) {
        if payload.len() <= FOOTER_LEN {
            continue;
        }
        let mut damaged = payload.clone();
        let middle = payload.len() / 2;
        if let Some(byte) = damaged.get_mut(middle) {
            *byte ^= 1;
        }
        let requests = [
            request(&[b"FUNCTION", b"RESTORE", &damaged, b"FLUSH"]),
            request(&[b"FUNCTION", b"RESTORE", payload, b"FLUSH"]),
            request(&[b"FUNCTION", b"LIST", b"WITHCODE"]),
        ];
        let answers = [reference.ask(&requests), subject.ask(&requests)];
        let [want, got] = &answers;
        for (want, got) in want.iter().zip(got) {
            if !Order::Listed.matches(want, got) {
                let [want, got] = [want, got].map(|it| printable(&it.to_bytes()));
                let payload = printable(payload);
                return Err(format!("libraries {payload}: wanted {want:?}, got {got:?}"));
            }
        }
    }
    Ok(())
}

fn request(words: &[&[u8]]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.to_vec()).collect()
}

fn blob(frame: Frame) -> Option<Vec<u8>> {
    match frame {
        Frame::Blob(_, bytes) => Some(bytes),
        _ => None,
    }
}
