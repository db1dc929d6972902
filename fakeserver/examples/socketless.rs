//! Requests straight into the engine: no port, no thread, no runtime.
//!
//! `cargo run -p fakeserver --example socketless`

#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use fakeserver::Server;

fn main() {
    let server = Server::new();
    for request in ["SET stock 3", "DECR stock", "GET stock", "LPUSH stock oops"] {
        println!("{request:<18} {:?}", server.command(request.split(' ')));
    }
}
