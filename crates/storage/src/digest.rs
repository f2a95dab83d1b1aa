//! SHA-256, as the hex text that manifests and names hold.

use std::io::Write;

use sha2::{Digest, Sha256};

/// 64 lower-case hex digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sha256Hex(pub String);

impl Sha256Hex {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(bytes))
    }

    fn finish(hasher: Sha256) -> Self {
        Self(hasher.finalize().iter().map(|b| format!("{b:02x}")).collect())
    }
}

/// Counts and hashes what passes through to a writer.
#[derive(Debug)]
pub struct HashingWriter<W> {
    inner: W,
    hasher: Sha256,
    n_bytes: u64,
}

impl<W: Write> HashingWriter<W> {
    /// A writer that passes on to `inner`.
    pub fn new(inner: W) -> Self {
        Self { inner, hasher: Sha256::new(), n_bytes: 0 }
    }

    /// The writer, how many bytes passed, and their digest.
    pub fn finish(self) -> (W, u64, Sha256Hex) {
        (self.inner, self.n_bytes, Sha256Hex::finish(self.hasher))
    }
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        let n = self.inner.write(buf)?;
        self.hasher.update(&buf[..n]);
        self.n_bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}
