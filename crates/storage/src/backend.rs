//! The two backends: the local disk and S3.

use std::sync::Arc;

use nearprint_fault::Result;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;

use crate::s3::Bucket;

/// Where the objects of a place are kept.
#[derive(Debug, Clone)]
pub enum Backend {
    Disk,
    Bucket(Arc<Bucket>),
}

impl Backend {
    /// Returns the store to read and write through. The first call for a bucket sets up its client.
    ///
    /// # Errors
    /// The bucket cannot be set up, for example because its endpoint is not a URL.
    pub async fn store(&self) -> Result<Arc<dyn ObjectStore>> {
        match self {
            Self::Disk => Ok(Arc::new(LocalFileSystem::new())),
            Self::Bucket(bucket) => Ok(Arc::clone(bucket.store().await?) as _),
        }
    }
}
