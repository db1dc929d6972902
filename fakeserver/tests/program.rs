//! The program: what it tells whoever started it, how it ends, and what it lets clients do.

#![cfg(feature = "program")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The program under test, ended with its value.
struct Program(Child);

impl Program {
    fn start(arguments: &[&str]) -> Program {
        let child = Command::new(env!("CARGO_BIN_EXE_fakeserver"))
            .args(["--port", "0"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        Program(child.unwrap())
    }

    /// The line that says it can be reached.
    fn ready(&mut self) -> String {
        let mut line = String::new();
        let out = self.0.stdout.as_mut().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The first line of the answer to an inline command.
fn ask(stream: &mut BufReader<TcpStream>, request: &str) -> String {
    stream
        .get_mut()
        .write_all(format!("{request}\r\n").as_bytes())
        .unwrap();
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn connect(port: &str) -> BufReader<TcpStream> {
    let port: u16 = port.trim().parse().unwrap();
    BufReader::new(TcpStream::connect(("127.0.0.1", port)).unwrap())
}

#[test]
fn it_writes_its_port_to_a_file_and_ends_with_its_parent() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("port");
    let mut program = Program::start(&[
        "--admin",
        "--parent-stdin",
        "--port-file",
        file.to_str().unwrap(),
    ]);
    let ready = program.ready();
    let port = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(ready, format!("Ready: redis://127.0.0.1:{port}"));
    let mut connection = connect(&port);
    assert_eq!(ask(&mut connection, "FAKE FAIL CLEAR"), ":0");
    // What is sent means nothing.
    program
        .0
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"text\n")
        .unwrap();
    assert_eq!(ask(&mut connection, "PING"), "+PONG");
    assert_eq!(program.0.try_wait().unwrap(), None);
    drop(program.0.stdin.take());
    assert!(program.0.wait().unwrap().success());
    let mut rest = Vec::new();
    assert_eq!(connection.read_to_end(&mut rest).unwrap_or(0), 0);
}

#[test]
fn it_outlives_its_input_and_keeps_the_word_unknown_unless_it_is_told_otherwise() {
    let mut program = Program::start(&[]);
    drop(program.0.stdin.take());
    let ready = program.ready();
    let mut connection = connect(ready.rsplit(':').next().unwrap());
    let unknown = "-ERR unknown command 'FAKE', with args beginning with: 'DUMP' ";
    assert_eq!(ask(&mut connection, "FAKE DUMP"), unknown.trim_end());
    assert_eq!(program.0.try_wait().unwrap(), None);
}

#[test]
fn a_port_file_that_cannot_be_written_ends_it() {
    let mut program = Program::start(&["--port-file", "/dev/null/port"]);
    assert_eq!(program.0.wait().unwrap().code(), Some(1));
}
