//! SHA-256 as hex text, the form that manifests and names use.

use std::io::Write;

use sha2::{Digest, Sha256};

/// A SHA-256 digest as 64 lower-case hex digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sha256Hex(pub String);

impl Sha256Hex {
    /// Returns the digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(bytes))
    }

    fn finish(hasher: Sha256) -> Self {
        Self(hasher.finalize().iter().map(|b| format!("{b:02x}")).collect())
    }
}

/// A writer that counts and hashes the bytes it passes on to another writer.
///
/// ```
/// use std::io::Write;
///
/// use nearprint_storage::{HashingWriter, Sha256Hex};
///
/// let mut writer = HashingWriter::new(Vec::new());
/// writer.write_all(b"abc")?;
/// let (written, n_bytes, digest) = writer.finish();
/// assert_eq!((written.as_slice(), n_bytes), (&b"abc"[..], 3));
/// assert_eq!(digest, Sha256Hex::of(b"abc"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct HashingWriter<W> {
    inner: W,
    hasher: Sha256,
    n_bytes: u64,
}

impl<W: Write> HashingWriter<W> {
    /// Creates a writer that passes everything on to `inner`.
    pub fn new(inner: W) -> Self {
        Self { inner, hasher: Sha256::new(), n_bytes: 0 }
    }

    /// Returns the inner writer, the number of bytes that it accepted, and their digest.
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
