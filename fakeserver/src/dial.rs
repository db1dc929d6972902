//! Connections that the server itself opens, to other servers: blocking sockets, since nobody else is served meanwhile.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::clock::Countdown;
use crate::links::{Link, LinkError, Patience, Place};

/// How long a socket is waited for at once; then it is asked whether the server is to end.
const SLICE: Duration = Duration::from_millis(50);

/// How long an attempt to connect may take, which cannot be looked at amid it.
const CONNECT_SLICE: Duration = Duration::from_secs(1);

/// Bytes of a line that are read at most, what follows is a line of its own (`syncReadLine` with a buffer of 1024).
const LINE_LEN_MAX: usize = 1023;

/// Opens a connection.
pub(crate) fn dial(place: &Place, patience: &Patience<'_>) -> Result<Box<dyn Link>, LinkError> {
    let addresses = resolve(place).ok_or(LinkError::NoWay)?;
    // Redis waits for the connection once, and once more for it to take the first bytes.
    let wait = Wait::new(patience.timeout.saturating_mul(2), patience);
    loop {
        let mut outcome = LinkError::NoWay;
        for address in &addresses {
            let slice = wait.slice(CONNECT_SLICE)?;
            match TcpStream::connect_timeout(address, slice) {
                Ok(stream) => {
                    // Delays of small packets would be the only thing that a failure here causes.
                    let _ = stream.set_nodelay(true);
                    return Ok(Box::new(Socket {
                        stream,
                        received: Vec::new(),
                    }));
                }
                Err(error) => outcome = refusal(&error),
            }
        }
        if outcome != LinkError::TimedOut {
            return Err(outcome);
        }
    }
}

/// What an attempt to connect that has failed looks like to Redis, which takes a connection that is under way for one.
fn refusal(error: &io::Error) -> LinkError {
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => LinkError::TimedOut,
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset | ErrorKind::HostUnreachable => {
            LinkError::Closed
        }
        _ => LinkError::NoWay,
    }
}

/// The addresses of a place; none if its name is not known. Both words end at a byte of 0, as C strings do.
fn resolve(place: &Place) -> Option<Vec<SocketAddr>> {
    let host = place.host.split(|byte| *byte == 0).next()?;
    let host = std::str::from_utf8(host)
        .ok()
        .filter(|host| !host.is_empty())?;
    let port = port(&place.port)?;
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs().ok()?.collect();
    Some(addresses).filter(|addresses| !addresses.is_empty())
}

/// The port that a word names by its first digits, none if it is negative: `atoi`, and the lower 16 bits of it.
fn port(word: &[u8]) -> Option<u16> {
    let word = word.trim_ascii_start();
    let (is_negative, digits) = match word {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0_i64, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
    });
    let number = if is_negative { -number } else { number } as i32;
    u32::try_from(number).ok().map(|number| number as u16)
}

/// A connection, and what has come in behind the line that was read last.
#[derive(Debug)]
struct Socket {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Socket {
    /// Takes a line out of what has come in, if there is a whole one.
    fn take_line(&mut self) -> Option<Vec<u8>> {
        let end = self
            .received
            .iter()
            .take(LINE_LEN_MAX)
            .position(|byte| *byte == b'\n');
        let (len, next) = match end {
            Some(end) => (end, end + 1),
            None if self.received.len() >= LINE_LEN_MAX => (LINE_LEN_MAX, LINE_LEN_MAX),
            None => return None,
        };
        let rest = self.received.split_off(next);
        let mut line = std::mem::replace(&mut self.received, rest);
        line.truncate(len);
        Some(line)
    }
}

impl Link for Socket {
    fn send(&mut self, bytes: &[u8], patience: &Patience<'_>) -> Result<(), LinkError> {
        let wait = Wait::new(patience.timeout, patience);
        let mut sent = 0;
        while sent < bytes.len() {
            let slice = wait.slice(SLICE)?;
            let set = self.stream.set_write_timeout(Some(slice));
            let written = set.and_then(|()| self.stream.write(&bytes[sent..]));
            sent += progress(written)?.unwrap_or_default();
        }
        Ok(())
    }

    fn receive_line(&mut self, patience: &Patience<'_>) -> Result<Vec<u8>, LinkError> {
        let mut wait = Wait::new(patience.timeout, patience);
        loop {
            if let Some(mut line) = self.take_line() {
                if line.is_empty() {
                    // Redis takes nothing at all for the end.
                    return Err(LinkError::Closed);
                }
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Ok(line);
            }
            let slice = wait.slice(SLICE)?;
            let mut room = [0; 1024];
            let set = self.stream.set_read_timeout(Some(slice));
            let read = set.and_then(|()| self.stream.read(&mut room));
            match progress(read)? {
                Some(0) => return Err(LinkError::Closed),
                Some(len) => {
                    self.received.extend_from_slice(&room[..len]);
                    // Each byte may take that long (`syncReadLine`).
                    wait = Wait::new(patience.timeout, patience);
                }
                None => {}
            }
        }
    }
}

/// How many bytes were moved; nothing if a slice of the time has passed in vain.
fn progress(moved: io::Result<usize>) -> Result<Option<usize>, LinkError> {
    match moved {
        Ok(len) => Ok(Some(len)),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(None),
            _ => Err(LinkError::Closed),
        },
    }
}

/// A wait that is cut into slices.
struct Wait<'a> {
    left: Countdown,
    patience: &'a Patience<'a>,
}

impl Wait<'_> {
    fn new<'a>(timeout: Duration, patience: &'a Patience<'a>) -> Wait<'a> {
        Wait {
            left: Countdown::of(timeout),
            patience,
        }
    }

    /// How long may be waited next, at most `slice`. Errors: time is over, or the server is to end.
    fn slice(&self, slice: Duration) -> Result<Duration, LinkError> {
        let left = self.left.left();
        if left.is_zero() || self.patience.driver.is_ending() {
            return Err(LinkError::TimedOut);
        }
        Ok(left.min(slice))
    }
}

#[cfg(test)]
mod tests {
    use super::port;

    #[test]
    fn a_port_is_read_as_c_reads_integers() {
        let cases: [(&str, Option<u16>); 9] = [
            ("6379", Some(6379)),
            (" 6379x", Some(6379)),
            ("+6379", Some(6379)),
            ("abc", Some(0)),
            ("", Some(0)),
            ("65536", Some(0)),
            ("71915", Some(6379)),
            ("-1", None),
            ("99999999999999999999", None),
        ];
        for (word, wanted) in cases {
            assert_eq!(port(word.as_bytes()), wanted, "{word:?}");
        }
    }
}
