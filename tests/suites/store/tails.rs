//! The end of a row tells its version: held against reading all of it, with rows that are made to deceive.

use proptest::{
    collection::vec, prelude::*, sample::select, strategy::ValueTree, test_runner::TestRunner,
};
use store::{CommitPath, Execution, StoreError, Version, codec};

use crate::{
    backend::{Protocol, ask},
    commits::by,
    meddling::Plan,
    twin::with_each,
};

/// Texts that look like the end of a row, or like the beginning of one, where they are not.
const PIECES: [&str; 24] = [
    r#""version":5"#,
    r#""version":5.0"#,
    r#""version":"5""#,
    r#""version":6"#,
    r#""\u0076ersion":6"#,
    r#""vers\u0069on":5"#,
    r#""a":",\"version\":5}""#,
    r#""a":"\\\\","b":"\\\"""#,
    r#""a":"{\"version\":7","b":"}""#,
    r#""a":{"version":5}"#,
    r#""a":[{"version":5},"version",5]"#,
    r#""a":[[],{"b":{"c":1,"version":5}}]"#,
    r#""version":{"version":5}"#,
    r#""version":[5]"#,
    r#""version":null"#,
    r#""":"version""#,
    r#""a":"version","b":5"#,
    r#""x":1e-7"#,
    r#""x":"é\u2028""#,
    r#""x":"\ud83d\ude00""#,
    r#""versio":5"#,
    r#""version ":5"#,
    r#""x":NaN"#,
    r#""x":{}"#,
];

const SEPARATORS: [&str; 4] = [",", ", ", " ,\n", ",\t "];
const ENDS: [&str; 4] = ["}", " }", "}\n", "} \t"];

/// A row of pieces.
fn rows() -> impl Strategy<Value = String> {
    let members = vec((select(&PIECES[..]), select(&SEPARATORS[..])), 0..7);
    (members, select(&ENDS[..])).prop_map(|(members, end)| {
        let mut row = r#"{"id":"a","definition_id":"d""#.to_owned();
        for (piece, separator) in members {
            row.push_str(separator);
            row.push_str(piece);
        }
        row + end
    })
}

/// A text that ends as the other does, or nearly, with anything in front.
fn endings(row: &str) -> impl Strategy<Value = String> + use<> {
    let tail = codec::version_tail(row).unwrap_or_default().to_owned();
    let fronts = [
        "",
        "{",
        r#"{"id":"a","definition_id":"d""#,
        r#"{"id":"a","definition_id":"d","version":9"#,
        r#"{"id":"a","definition_id":"d","x":{"y":1"#,
        r#"{"id":"a","definition_id":"d","x":[1"#,
        r#"{"id":"a","definition_id":"d","x":"open"#,
        r#"{"id":"a","definition_id":"d","x":"open\"#,
        r#"{"id":"a","definition_id":"d","x":"open\\"#,
        r#"{"id":"a","definition_id":"d","x":"shut""#,
        r#"[{"id":"a","definition_id":"d""#,
    ];
    (select(fronts.to_vec()), any::<proptest::sample::Index>()).prop_map(move |(front, cut)| {
        let boundaries: Vec<usize> = tail.char_indices().map(|(at, _)| at).take(3).collect();
        let cut = boundaries.get(cut.index(4)).copied().unwrap_or(0);
        format!("{front}{}", tail.get(cut..).unwrap_or_default())
    })
}

#[test]
fn a_row_that_ends_like_another_has_its_version() {
    let mut runner = TestRunner::deterministic();
    let pairs = rows().prop_flat_map(|row| {
        let stored = prop_oneof![endings(&row), rows()];
        (Just(row), stored)
    });
    let (mut cases, mut compared) = (0, 0);
    for _ in 0..8_000 {
        let (row, stored): (String, String) = pairs.new_tree(&mut runner).unwrap().current();
        let (Ok(version), Ok(found)) = (
            codec::decode_version(row.as_bytes()),
            codec::decode_version(stored.as_bytes()),
        ) else {
            continue;
        };
        cases += 1;
        let tail = codec::version_tail(&row).expect("a row with a version");
        if stored.ends_with(tail) {
            compared += 1;
            assert_eq!(found, version, "{row}\n{stored}");
        }
    }
    assert!(cases > 500 && compared > 100, "{cases} {compared}");
}

#[test]
fn naively_the_text_of_a_version_is_looked_for_at_the_end_of_a_row() {
    // Without its separator, or to anywhere but the end, the text is in rows of other versions too.
    let row = r#"{"id":"a","version":5}"#;
    for (stored, text) in [
        (
            r#"{"id":"a","version":6,"x":{"y":1,"version":5}}"#,
            r#","version":5}"#,
        ),
        (
            r#"{"version":6,"x":"y\",\"version\":5}"}"#,
            r#"version\":5}"#,
        ),
    ] {
        assert!(
            stored.contains(text) && codec::decode_version(stored.as_bytes()).unwrap().get() == 6
        );
    }
    assert_eq!(codec::version_tail(row), Some(r#","version":5}"#));
}

#[test]
fn a_document_that_knows_its_end_is_judged_as_one_that_does_not() {
    with_each(|backend, side| {
        let mut runner = TestRunner::deterministic();
        let mut connection = backend.connect(Protocol::Resp2);
        let pairs = rows().prop_flat_map(|row| {
            let stored = prop_oneof![endings(&row), rows()];
            (Just(row), stored)
        });
        let mut store = side.store_with(backend, by(CommitPath::Script), Plan::none());
        let mut landed = 0;
        for _ in 0..200 {
            let (row, stored): (String, String) = pairs.new_tree(&mut runner).unwrap().current();
            ask(&mut connection, &["SET", "stm:exe:a", &row]);
            let Ok(Some(mut execution)) = store.load("a") else {
                continue;
            };
            ask(&mut connection, &["SET", "stm:exe:a", &stored]);
            let version = execution.version;
            let result = store.save(&mut execution);
            match (codec::decode_version(stored.as_bytes()), result) {
                (Ok(found), Ok(_)) if found == version => landed += 1,
                (Ok(found), Err(StoreError::Conflict { found: seen, .. })) => {
                    assert!(found != version && seen == Some(found), "{row}\n{stored}");
                }
                // A row that is no JSON and ends like one of ours can only be known for what it is by reading all of it.
                (Err(_), Ok(_)) if ends_like(&row, &stored) => {}
                (Err(_), Err(StoreError::Corrupt { .. })) => {}
                (found, result) => panic!("{row}\n{stored}\n{found:?} {result:?}"),
            }
        }
        assert!(landed > 10, "{landed}");
    });
}

fn ends_like(row: &str, stored: &str) -> bool {
    codec::version_tail(row).is_some_and(|tail| stored.ends_with(tail))
}

#[test]
fn an_end_of_another_version_is_not_used() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        store.save(&mut Execution::new("a", "d")).unwrap();
        let mut execution = store.load("a").unwrap().unwrap();
        execution.version = Version::new(7);
        let error = store.save(&mut execution).unwrap_err();
        let text = "stale write to a: expected version 7, found 1";
        assert_eq!(error.to_string(), text);
    });
}
