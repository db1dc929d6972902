//! What a client sends: in whatever pieces it arrives, it is answered alike.

use super::bench::Bench;

/// The first byte says how the others are cut into pieces.
pub(super) fn run(bytes: &[u8]) -> Result<(), String> {
    let Some((cut, sent)) = bytes.split_first() else {
        return Ok(());
    };
    let (mut whole, mut pieces) = (Bench::new(), Bench::new());
    let (to_whole, to_pieces) = (whole.connect(), pieces.connect());
    whole.engine.receive(to_whole, sent, whole.now);
    for piece in sent.chunks(usize::from(*cut % 32) + 1) {
        pieces.engine.receive(to_pieces, piece, pieces.now);
    }
    let (at_once, in_pieces) = (whole.output(to_whole), pieces.output(to_pieces));
    // Counts of reads are among the figures that INFO prints.
    let counts = |out: &[u8]| memchr(out, b"total_net_input_bytes") || memchr(out, b"qbuf=");
    if at_once != in_pieces && !counts(&at_once) {
        return Err(format!(
            "sent at once:\n{}\nsent in pieces:\n{}",
            String::from_utf8_lossy(&at_once),
            String::from_utf8_lossy(&in_pieces)
        ));
    }
    let mut other = whole.call(["PING"]);
    // A password that the input has set is asked for.
    if other.is_error() {
        other = whole.call(["RESET"]);
    }
    if other.is_error() {
        return Err(format!("the next client is answered {other:?}"));
    }
    Ok(())
}

fn memchr(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
