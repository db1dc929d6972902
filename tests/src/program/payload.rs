//! What FUNCTION DUMP answers, made of libraries' sources.

/// Of the polynomial that redis-server's checksums are of, with its bits turned round.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

/// Begins a library.
const LIBRARY: u8 = 245;

/// The version of the format.
const VERSION: [u8; 2] = [10, 0];

/// The payload of some libraries.
pub(super) fn payload(sources: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for source in sources {
        out.push(LIBRARY);
        match source.len() {
            len @ 0..=63 => out.push(len as u8),
            len @ 64..=16383 => out.extend([0x40 | (len >> 8) as u8, len as u8]),
            len => {
                out.push(0x80);
                out.extend((len as u32).to_be_bytes());
            }
        }
        out.extend(source);
    }
    out.extend(VERSION);
    let checksum = checksum(&out);
    out.extend(checksum.to_le_bytes());
    out
}

fn checksum(bytes: &[u8]) -> u64 {
    let shifted = |sum: u64| (sum >> 1) ^ if sum & 1 == 1 { POLYNOMIAL } else { 0 };
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u64::from(*byte), |sum, _| shifted(sum))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_is_that_of_redis_server() {
        assert_eq!(super::checksum(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }
}
