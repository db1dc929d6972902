//! A proxy in front of one node, which can swallow the reply to a script.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use tests::cluster::Node;

pub(crate) struct Proxy {
    port: u16,
    armed: Arc<AtomicBool>,
}

impl Proxy {
    /// In front of this node. What the cluster says of the node's port is changed on the way, so that clients come back here.
    pub(crate) fn before(node: &Node) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let armed = Arc::new(AtomicBool::new(false));
        let (behind, shared) = (node.port(), armed.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", behind)) else {
                    continue;
                };
                carry(&client, &server, &shared, (behind, port));
            }
        });
        Self { port, armed }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// The next script runs, and nobody hears of it.
    pub(crate) fn swallow_a_reply(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn has_swallowed(&self) -> bool {
        !self.armed.load(Ordering::SeqCst)
    }
}

fn carry(
    client: &TcpStream,
    server: &TcpStream,
    armed: &Arc<AtomicBool>,
    (behind, port): (u16, u16),
) {
    let cut = Arc::new(AtomicBool::new(false));
    let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (shared, armed) = (cut.clone(), armed.clone());
    thread::spawn(move || {
        pump(from, to, |bytes| {
            let script = bytes.windows(7).any(|window| window == b"EVALSHA");
            if script && armed.swap(false, Ordering::SeqCst) {
                shared.store(true, Ordering::SeqCst);
            }
            Some(bytes.to_vec())
        });
    });
    let (from, to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || {
        pump(from, to, |bytes| {
            let text = String::from_utf8_lossy(bytes);
            let said = text.replace(&format!(":{behind}\r\n"), &format!(":{port}\r\n"));
            (!cut.load(Ordering::SeqCst)).then(|| said.into_bytes())
        });
    });
}

/// Until one side ends, or there is nothing to pass on.
fn pump(mut from: TcpStream, mut to: TcpStream, mut pass: impl FnMut(&[u8]) -> Option<Vec<u8>>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        match pass(&buffer[..count]) {
            Some(bytes) if to.write_all(&bytes).is_ok() => {}
            _ => break,
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
