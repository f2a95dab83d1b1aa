//! Local disk or S3.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;

use crate::error::Result;
use crate::s3::Bucket;

/// What an object lies in.
#[derive(Debug, Clone)]
pub enum Backend {
    Disk,
    Bucket(Arc<Bucket>),
}

impl Backend {
    pub async fn store(&self) -> Result<Arc<dyn ObjectStore>> {
        match self {
            Self::Disk => Ok(Arc::new(LocalFileSystem::new())),
            Self::Bucket(bucket) => Ok(Arc::clone(bucket.store().await?) as _),
        }
    }
}
