//! Digests of blocks, as headers of records give them.

use sha1::{Digest, Sha1};

/// Returns whether a block has the digest `sha1:…`, in Base32 or hex. Digests of other kinds are not looked at.
pub fn agrees(digest: &str, block: &[u8]) -> bool {
    let Some(given) = digest.trim().get(5..).filter(|_| digest.trim()[..5].eq_ignore_ascii_case("sha1:")) else {
        return true;
    };
    let own = Sha1::digest(block);
    match given.len() {
        32 => given.eq_ignore_ascii_case(&base32(&own)),
        40 => given.eq_ignore_ascii_case(&own.iter().map(|b| format!("{b:02x}")).collect::<String>()),
        _ => true,
    }
}

fn base32(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bit = |at: usize| usize::from(bytes[at / 8] >> (7 - at % 8) & 1);
    let letter = |first: usize| char::from(LETTERS[(first..first + 5).fold(0, |value, at| value << 1 | bit(at))]);
    (0..bytes.len() * 8 / 5).map(|n| letter(n * 5)).collect()
}

#[cfg(test)]
mod tests {
    use super::agrees;

    #[test]
    fn a_digest_agrees_in_either_writing_and_with_its_block_alone() {
        assert!(agrees("sha1:DA39A3EE5E6B4B0D3255BFEF95601890AFD80709", b""));
        assert!(agrees("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", b""));
        assert!(!agrees("SHA1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", b"a"));
        assert!(agrees("sha256:00", b"a") && agrees("x", b"a") && agrees("sha1é", b"a"));
    }
}
