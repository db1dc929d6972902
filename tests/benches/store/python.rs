//! Our commits beside those of the Python store, and beside its script.

use redis::cmd;
use serde_json::json;
use store::{AsyncRedisStore, Commit, RedisStore, codec};
use tests::peer::{Flavour, Peer};
use tokio::runtime::Builder;

use crate::{Row, cost, cost::Cost, documents, each};

/// Each kind of commit with the goals for processor and wall.
const KINDS: [(bool, &str, f64, f64); 2] =
    [(false, "state only", 4.0, 2.0), (true, "complex", 8.0, 4.0)];

/// The Python store's commits, and ours with the same twin.
pub(crate) fn compare(
    peer: &mut Peer,
    flavour: Flavour,
    url: &str,
    rounds: usize,
    count: usize,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for (is_complex, name, processor_goal, wall_goal) in KINDS {
        let name = format!("{name}, 1 KB: Python ({}),", flavour.name());
        let mut processor = Row::new(format!("{name} client CPU"), processor_goal);
        let mut wall = Row::new(format!("{name} wall"), wall_goal);
        for _ in 0..rounds {
            documents::flush(url);
            let theirs = theirs(peer, count, is_complex);
            documents::flush(url);
            let ours = ours(flavour, url, count, is_complex);
            let (theirs, ours) = (each(&theirs, count), each(&ours, count));
            processor.add(theirs.0, ours.0);
            wall.add(theirs.1, ours.1);
        }
        rows.extend([processor, wall]);
    }
    rows
}

fn theirs(peer: &mut Peer, count: usize, is_complex: bool) -> Cost {
    let args = json!({
        "execution_id": "order-17", "size": documents::SMALL, "count": count, "is_complex": is_complex,
    });
    let took = peer
        .call("bench.commits", &args)
        .expect("the commits succeed");
    let seconds = |at: usize| took[at].as_f64().expect("seconds");
    Cost {
        processor_s: seconds(0),
        wall_s: seconds(1),
    }
}

fn ours(flavour: Flavour, url: &str, count: usize, is_complex: bool) -> Cost {
    let commits = documents::commits(count, is_complex);
    let mut execution = documents::execution(documents::SMALL);
    // The first one opens the connection and tells the server the script.
    let warm = Commit::for_event("warm");
    let settings = documents::settings();
    if flavour == Flavour::Sync {
        let store = RedisStore::from_url(url).expect("a valid URL");
        let mut store = store.settings(settings);
        store.commit(&mut execution, &warm).expect("a commit");
        return cost::of(|| {
            for commit in &commits {
                store.commit(&mut execution, commit).expect("a commit");
            }
        });
    }
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let store = AsyncRedisStore::from_url(url).expect("a valid URL");
    let mut store = store.settings(settings);
    runtime
        .block_on(store.commit(&mut execution, &warm))
        .expect("a commit");
    cost::of(|| {
        runtime.block_on(async {
            for commit in &commits {
                store
                    .commit(&mut execution, commit)
                    .await
                    .expect("a commit");
            }
        });
    })
}

/// Large rows: our commit beside the script of the Python store, which reads the whole row, called by the same client. Both
/// spell their rows alike.
pub(crate) fn compare_scripts(peer: &mut Peer, url: &str, rounds: usize, count: usize) -> Row {
    let mut row = Row::new("state only, 64 KB: Python's script, wall", 4.0);
    // Large rows are slow: fewer tell as much.
    let count = (count / 5).max(1);
    let script = peer.call("bench.script", &json!({})).expect("a script");
    let script = script.as_str().expect("text").to_owned();
    for _ in 0..rounds {
        documents::flush(url);
        let theirs = script_calls(url, &script, count);
        documents::flush(url);
        let mut store = RedisStore::from_url(url)
            .expect("a valid URL")
            .settings(documents::settings());
        let mut execution = documents::execution(documents::LARGE);
        let commits = documents::commits(count, false);
        store
            .commit(&mut execution, &Commit::for_event("warm"))
            .expect("a commit");
        let ours = cost::of(|| {
            for commit in &commits {
                store.commit(&mut execution, commit).expect("a commit");
            }
        });
        row.add(each(&theirs, count).1, each(&ours, count).1);
    }
    row
}

fn script_calls(url: &str, script: &str, count: usize) -> Cost {
    let mut connection = documents::connect(url);
    let digest: String = cmd("SCRIPT")
        .arg("LOAD")
        .arg(script)
        .query(&mut connection)
        .expect("a script");
    let mut execution = documents::execution(documents::LARGE);
    let mut call = |number: usize| {
        let version = execution.version;
        let next = version.next().expect("a small number");
        let row = codec::encode_execution(&execution, next);
        let landed: i64 = cmd("EVALSHA")
            .arg(&digest)
            .arg(2)
            .arg("stm:exe:order-17")
            .arg("stm:processed:order-17")
            .arg(row)
            .arg(version.get())
            .arg(format!("event-{number}"))
            .query(&mut connection)
            .expect("a commit");
        assert_eq!(landed, 1);
        execution.version = next;
    };
    call(0);
    cost::of(|| (1..=count).for_each(call))
}
