//! Digests of blocks, as headers of records give them.

use sha1::{Digest, Sha1};

/// Returns whether a digest is of the kind that can be compared.
pub fn is_known(digest: &str) -> bool {
    given(digest).is_some()
}

/// Returns a digest of SHA-1, in Base32 or hex.
fn given(digest: &str) -> Option<&str> {
    let (kind, given) = digest.trim().split_once(':')?;
    (kind.eq_ignore_ascii_case("sha1") && matches!(given.len(), 32 | 40)).then_some(given)
}

/// Returns whether a block has the digest `sha1:…`, in Base32 or hex; `None` if the digest is of another kind.
pub fn agrees(digest: &str, block: &[u8]) -> Option<bool> {
    let given = given(digest)?;
    let own = Sha1::digest(block);
    let own = if given.len() == 32 { base32(&own) } else { own.iter().map(|b| format!("{b:02x}")).collect() };
    Some(given.eq_ignore_ascii_case(&own))
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
        assert_eq!(agrees("sha1:DA39A3EE5E6B4B0D3255BFEF95601890AFD80709", b""), Some(true));
        assert_eq!(agrees("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", b""), Some(true));
        assert_eq!(agrees("SHA1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", b"a"), Some(false));
        for other in ["sha256:00", "x", "sha1:é", "sha1é", ""] {
            assert_eq!(agrees(other, b"a"), None);
        }
    }
}
