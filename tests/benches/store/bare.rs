//! Our commits beside the very same calls of the script, whose words were spelled before, by the same client without a store.

use redis::{ConnectionLike, RedisResult, Value, cmd};
use store::RedisStore;

use crate::{Row, cost, documents, each};

/// A connection that keeps what it has sent.
struct Recording {
    inner: redis::Connection,
    sent: Vec<Vec<u8>>,
}

impl ConnectionLike for Recording {
    fn req_packed_command(&mut self, command: &[u8]) -> RedisResult<Value> {
        self.inner.req_packed_command(command)
    }

    fn req_packed_commands(
        &mut self,
        commands: &[u8],
        offset: usize,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        self.sent.push(commands.to_vec());
        self.inner.req_packed_commands(commands, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.inner.get_db()
    }

    fn check_connection(&mut self) -> bool {
        self.inner.check_connection()
    }

    fn is_open(&self) -> bool {
        self.inner.is_open()
    }
}

/// Commits per second: ours, divided by the bare calls'.
pub(crate) fn compare(url: &str, rounds: usize, count: usize) -> Vec<Row> {
    let kinds = [(false, "state only"), (true, "complex")];
    kinds
        .into_iter()
        .map(|(is_complex, name)| {
            let name = format!("{name}, 1 KB: bare EVALSHA, wall");
            let mut row = Row::new(name, 0.9);
            let requests = record(url, count, is_complex);
            for _ in 0..rounds {
                let bare = bare(url, &requests);
                let ours = ours(url, count, is_complex);
                row.add(each(&bare, count).1, each(&ours, count).1);
            }
            row
        })
        .collect()
}

/// The words of what our store sends for these commits, when the server knows the script.
fn record(url: &str, count: usize, is_complex: bool) -> Vec<Vec<Vec<u8>>> {
    ours(url, 1, is_complex);
    documents::flush(url);
    let recording = Recording {
        inner: documents::connect(url),
        sent: Vec::new(),
    };
    let mut store = RedisStore::with_settings(recording, documents::settings());
    let mut execution = documents::execution(documents::SMALL);
    for commit in documents::commits(count, is_complex) {
        store.commit(&mut execution, &commit).expect("a commit");
    }
    let sent = store.into_connection().sent;
    assert_eq!(sent.len(), count, "one request for each commit");
    sent.iter().map(|request| words(request)).collect()
}

/// The words of a request.
fn words(request: &[u8]) -> Vec<Vec<u8>> {
    let line = |at: usize| {
        let end = request[at..].iter().position(|byte| *byte == b'\r');
        let end = at + end.expect("a whole line");
        let text = std::str::from_utf8(&request[at + 1..end]).expect("a number");
        (text.parse::<usize>().expect("a number"), end + 2)
    };
    let (count, mut at) = line(0);
    let mut words = Vec::new();
    for _ in 0..count {
        let (len, start) = line(at);
        words.push(request[start..start + len].to_vec());
        at = start + len + 2;
    }
    words
}

fn bare(url: &str, requests: &[Vec<Vec<u8>>]) -> cost::Cost {
    documents::flush(url);
    let mut connection = documents::connect(url);
    cost::of(|| {
        for words in requests {
            let reply: RedisResult<Value> = cmd("EVALSHA").arg(&words[1..]).query(&mut connection);
            reply.expect("a commit");
        }
    })
}

fn ours(url: &str, count: usize, is_complex: bool) -> cost::Cost {
    documents::flush(url);
    let connection = documents::connect(url);
    let mut store = RedisStore::with_settings(connection, documents::settings());
    let mut execution = documents::execution(documents::SMALL);
    let commits = documents::commits(count, is_complex);
    cost::of(|| {
        for commit in &commits {
            store.commit(&mut execution, commit).expect("a commit");
        }
    })
}
