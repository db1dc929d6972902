//! Every option of every command is shown by a transcript, and `fakeserver/COMPATIBILITY.md` says which and where. What an option
//! is comes from COMMAND DOCS; `RECORD=1` writes the document's tables anew.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::path::PathBuf;

use tests::compatibility::{
    Described, Kind, Remark, Survey, documentation, recorded, with_generated,
};
use tests::json::{normal, to_json};
use tests::raw::Raw;
use tests::server::{Backend, Kind as Server, real_url};
use tests::transcript::Transcript;

const ALL: &[&str] = &["*"];
const CALL: &[&str] = &[""];

/// What is to be said of ways to use a command that no good answer in a transcript shows, or not the whole of it.
#[rustfmt::skip]
const REMARKS: &[Remark] = &[
    remark("acl|load",            ALL,  Kind::Refused, "the server has no file of users"),
    remark("acl|save",            ALL,  Kind::Refused, "the server has no file of users"),
    remark("bgrewriteaof",        ALL,  Kind::AnswersOnly, "no file is written"),
    remark("bgrewriteaof",        ALL,  Kind::InSuite("administration.rs"), "works in the background of redis-server"),
    remark("bgsave",              ALL,  Kind::AnswersOnly, "no file is written"),
    remark("bgsave",              ALL,  Kind::InSuite("administration.rs"), "works in the background of redis-server"),
    remark("save",                ALL,  Kind::AnswersOnly, "no file is written"),
    remark("client|no-evict",     ALL,  Kind::AnswersOnly, "no client is ever evicted"),
    remark("latency|doctor",      ALL,  Kind::AnswersOnly, "time stands still inside a command, so there is never a spike"),
    remark("latency|histogram",   ALL,  Kind::AnswersOnly, "calls are counted, each with no time"),
    remark("latency|history",     ALL,  Kind::AnswersOnly, "time stands still inside a command, so there is never an event"),
    remark("latency|latest",      ALL,  Kind::AnswersOnly, "time stands still inside a command, so there is never an event"),
    remark("latency|reset",       ALL,  Kind::AnswersOnly, "time stands still inside a command, so there is never an event"),
    remark("lolwut",              ALL,  Kind::AnswersOnly, "the version's text without the pictures of versions 5 and 6"),
    remark("memory|doctor",       ALL,  Kind::AnswersOnly, "finds no fault, whatever there is"),
    remark("memory|malloc-stats", ALL,  Kind::AnswersOnly, "the allocator has no statistics"),
    remark("memory|purge",        ALL,  Kind::AnswersOnly, "there is nothing to give back"),
    remark("object|freq",         ALL,  Kind::AnswersOnly, "no LFU policy takes effect, so there is no frequency"),
    remark("script|debug",        &["YES", "SYNC"], Kind::AnswersOnly, "no debugging session follows"),
    remark("debug", &["CHANGE-REPL-ID"], Kind::AnswersOnly, "there is no replication"),
    remark("debug", &["LOADAOF"],  Kind::AnswersOnly, "the data stays as it is"),
    remark("debug", &["LOADAOF"],  Kind::InSuite("administration.rs"), "ends a redis-server that keeps no append only file"),
    remark("debug", &["LOG message"], Kind::AnswersOnly, "there is no log"),
    remark("debug", &["PAUSE-CRON 0|1"], Kind::AnswersOnly, "there is no cron job"),
    remark("debug", &["AOF-FLUSH-SLEEP microseconds"], Kind::AnswersOnly, "there is no append only file"),
    remark("debug", &["DROP-CLUSTER-PACKET-FILTER type"], Kind::AnswersOnly, "there is no cluster"),
    remark("debug", &["LEAK string"], Kind::AnswersOnly, "no memory leaks"),
    remark("debug", &["REPLICATE argument", "REPLICATE argument ..."], Kind::AnswersOnly, "there is no replication"),
    remark("debug", &["CLIENT-EVICTION", "CONFIG-REWRITE-FORCE-ALL"], Kind::Refused, "nothing of this is configured"),
    remark("debug", &["RELOAD [MERGE] [NOFLUSH] [NOSAVE]", "RELOAD MERGE", "RELOAD NOFLUSH", "RELOAD NOSAVE"],
        Kind::AnswersOnly, "the data stays as it is"),
    remark("debug", &["REPLYBUFFER PEAK-RESET-TIME NEVER", "REPLYBUFFER PEAK-RESET-TIME RESET", "REPLYBUFFER PEAK-RESET-TIME time",
        "REPLYBUFFER RESIZING 0|1"], Kind::AnswersOnly, "reply buffers are not resized by a timer"),
    remark("debug", &["CLUSTERLINK KILL to|from|all node-id"], Kind::Refused, "the server is no cluster"),
    remark("debug", &["ASSERT", "OOM", "PANIC", "SEGFAULT"], Kind::InSuite("administration.rs"), "ends the server"),
    remark("debug", &["STRINGMATCH-TEST"], Kind::InSuite("administration.rs"), "takes redis-server ten seconds"),
    remark("debug", &["ERROR message"], Kind::Error, "an error is what it is called for"),
    remark("asking",              ALL,  Kind::Refused, "the server is no cluster"),
    remark("cluster|*",           ALL,  Kind::Refused, "the server is no cluster"),
    remark("readonly",            ALL,  Kind::Refused, "the server is no cluster"),
    remark("readwrite",           ALL,  Kind::Refused, "the server is no cluster"),
    remark("config|rewrite",      ALL,  Kind::Refused, "the server has no configuration file"),
    remark("failover",            ALL,  Kind::Refused, "there are no replicas"),
    remark("latency|graph",       ALL,  Kind::Refused, "time stands still inside a command, so there is never an event"),
    remark("module|load",         ALL,  Kind::Refused, "modules are not allowed, as by default"),
    remark("module|loadex",       ALL,  Kind::Refused, "modules are not allowed, as by default"),
    remark("module|unload",       ALL,  Kind::Refused, "modules are not allowed, as by default"),
    remark("replconf",            ALL,  Kind::AnswersOnly, "no replica follows"),
    remark("script|kill",         ALL,  Kind::Refused, "no script runs while others are served"),
    remark("function|kill",       ALL,  Kind::Refused, "no script runs while others are served"),
    remark("shutdown", &["SAVE"],  Kind::AnswersOnly, "no file is written"),
    remark("shutdown", &["ABORT"], Kind::Refused, "no shutdown ever waits"),
    remark("shutdown",            ALL,  Kind::InSuite("administration.rs"), "ends the server"),
    remark("replicaof", &["host port"], Kind::Missing, "there is no replication"),
    remark("slaveof",   &["host port"], Kind::Missing, "there is no replication"),
    remark("client|tracking", &["REDIRECT client-id"], Kind::InSuite("tracking.rs"), "needs the number of a connection"),
    remark("client|kill", &["ip:port"], Kind::InSuite("administration.rs"), "needs the address of a connection"),
    remark("client|reply", &["OFF", "SKIP"], Kind::Silent, "replies are what it switches off"),
    remark("command",             CALL, Kind::InSuite("administration.rs"), "tells of every command"),
    remark("command|docs", &["without [command-name]"], Kind::InSuite("administration.rs"), "tells of every command"),
    remark("command|info", &["without [command-name]"], Kind::InSuite("administration.rs"), "tells of every command"),
    remark("command|list", &["without FILTERBY MODULE module-name|ACLCAT category|PATTERN pattern"],
        Kind::InSuite("administration.rs"), "tells of every command"),
];

const fn remark(
    command: &'static str,
    choices: &'static [&'static str],
    kind: Kind,
    reason: &'static str,
) -> Remark {
    Remark {
        command,
        choices,
        kind,
        reason,
    }
}

fn package() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The transcripts' names without their ending, and their texts.
fn texts() -> Vec<(String, String)> {
    let mut texts: Vec<(String, String)> = std::fs::read_dir(package().join("transcripts"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    texts.sort();
    texts
}

fn parsed(texts: &[(String, String)]) -> Vec<Transcript> {
    let parsed = texts
        .iter()
        .map(|(name, text)| Transcript::parse(name, text).unwrap());
    parsed.collect()
}

fn connect(server: Server) -> (Backend, Raw) {
    let backend = Backend::start(server);
    let mut raw = backend.raw();
    raw.call(&["HELLO", "3"]);
    (backend, raw)
}

/// The commands of the fake, as it describes them.
fn ours() -> Vec<Described> {
    let (_backend, mut raw) = connect(Server::Memory);
    Described::of_server(&mut raw)
}

fn survey() -> Survey {
    Survey::new(ours(), &parsed(&texts()))
}

/// Whether a suite has every word of a command's name.
fn in_suite(file: &str, command: &str) -> bool {
    let text = std::fs::read_to_string(package().join("suites").join(file)).unwrap();
    let mut words = command.split('|').map(str::to_ascii_uppercase);
    words.all(|word| text.contains(&word))
}

#[test]
fn a_transcript_shows_every_option_of_every_command() {
    let failures = survey().failures(REMARKS, in_suite);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_document_says_what_is_there() {
    let path = package().join("../fakeserver/COMPATIBILITY.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let tables = survey().tables(&Described::recorded(), REMARKS);
    let wanted = with_generated(&document, &tables).expect("the document has marks for its tables");
    if std::env::var_os("RECORD").is_some() {
        std::fs::write(&path, wanted).unwrap();
        return;
    }
    let differs = wanted.lines().zip(document.lines()).find(|(a, b)| a != b);
    assert!(
        wanted == document,
        "fakeserver/COMPATIBILITY.md is not what the transcripts show; write it with `RECORD=1 cargo test -p tests --test \
         compatibility`. The first difference, wanted and found: {differs:#?}"
    );
}

#[test]
fn the_fake_documents_no_command_that_redis_does_not_have_and_no_option_otherwise() {
    let (_backend, mut raw) = connect(Server::Memory);
    let recorded = recorded();
    for (name, ours) in documentation(&mut raw) {
        let theirs = recorded.get(&name).map(|entry| normal("", &entry["docs"]));
        assert_eq!(Some(ours), theirs, "{name}");
    }
}

#[test]
fn the_recorded_commands_are_those_of_the_real_server() {
    if real_url().is_none() {
        return;
    }
    let (_backend, mut raw) = connect(Server::Real);
    let theirs = documentation(&mut raw);
    let recorded = recorded();
    let list = to_json(&raw.call(&["COMMAND", "LIST"]));
    let mut list: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|name| name.as_str())
        .collect();
    list.sort_unstable();
    let mut names: Vec<&str> = recorded.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, list);
    for (name, entry) in &recorded {
        assert_eq!(
            Some(&normal("", &entry["docs"])),
            theirs.get(name),
            "{name}"
        );
    }
}

#[test]
fn subcommands_of_which_only_a_help_speaks_are_not_there_unless_their_syntax_is_known() {
    let (_backend, mut raw) = connect(Server::Memory);
    let mut asked = 0;
    for Described { name, absent, .. } in ours() {
        for word in &absent {
            for arguments in [&[][..], &["0"], &["0", "0"]] {
                let request = [&[name.as_str(), word][..], arguments].concat();
                let reply = to_json(&raw.call(&request));
                let unknown =
                    format!("ERR unknown subcommand or wrong number of arguments for '{word}'");
                let reply = reply.as_str().unwrap_or_default();
                assert!(reply.starts_with(&unknown), "{request:?}: {reply}");
                asked += 1;
            }
        }
    }
    assert!(asked > 0);
}

/// What the check says when the transcripts lack the exchanges whose requests fit.
fn failures_without(fits: impl Fn(&str) -> bool) -> Vec<String> {
    let mut texts = texts();
    for (_, text) in &mut texts {
        let mut taken = false;
        let mut kept = String::new();
        for line in text.lines() {
            taken = line.starts_with("> ") && fits(line) || taken && !line.is_empty();
            if !taken {
                kept.push_str(line);
                kept.push('\n');
            }
        }
        *text = kept;
    }
    Survey::new(ours(), &parsed(&texts)).failures(REMARKS, in_suite)
}

#[test]
fn an_option_whose_exchanges_are_taken_out_is_missed() {
    assert_eq!(failures_without(|_| false), Vec::<String>::new());
    let persist = |line: &str| line.starts_with("> GETEX ") && line.contains("PERSIST");
    assert_eq!(
        failures_without(persist),
        ["getex PERSIST: no transcript shows it"]
    );
    let error = |line: &str| line == "> CLUSTER RESET HARD";
    assert_eq!(
        failures_without(error),
        ["cluster|reset HARD: no transcript shows it"]
    );
}

#[test]
fn an_option_that_the_walk_does_not_meet_is_missed() {
    let mut commands = ours();
    for command in &mut commands {
        if command.name == "set" {
            command.syntax = std::mem::take(&mut command.syntax).with_lost_token("KEEPTTL");
        }
    }
    let failures = Survey::new(commands, &parsed(&texts())).failures(REMARKS, in_suite);
    assert_eq!(failures, ["set KEEPTTL: no transcript shows it"]);
}

#[test]
fn a_remark_that_is_not_needed_is_told() {
    let told = |wrong: Remark| {
        let remarks = [REMARKS, &[wrong]].concat();
        let failures = survey().failures(&remarks, in_suite);
        assert_eq!(failures.len(), 1, "{failures:?}");
        failures.concat()
    };
    let shown = told(remark("set", &["NX"], Kind::Refused, "a wrong reason"));
    assert!(shown.starts_with("set NX: "), "{shown}");
    assert!(
        shown.ends_with("so this remark is wrong: a wrong reason"),
        "{shown}"
    );
    let nothing = told(remark(
        "set",
        &["NOSUCH"],
        Kind::AnswersOnly,
        "a wrong reason",
    ));
    assert!(
        nothing.ends_with("there is nothing that this is about"),
        "{nothing}"
    );
}
