//! The S3 server that trials run against, as NEARPRINT_TEST_S3_ENDPOINT, NEARPRINT_TEST_S3_BUCKET and AWS_* name it.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::{Result, require};

/// A bucket on a server, reached directly and not through a proxy.
#[derive(Debug, Clone)]
pub struct Server {
    pub endpoint: String,
    pub bucket: String,
    client: Arc<Client>,
}

#[derive(Debug)]
struct Client {
    runtime: tokio::runtime::Runtime,
    store: AmazonS3,
}

impl Server {
    /// The server that the environment names; none where it names none.
    pub fn from_env() -> Result<Option<Self>> {
        let Ok(endpoint) = std::env::var("NEARPRINT_TEST_S3_ENDPOINT") else {
            return Ok(None);
        };
        let bucket = std::env::var("NEARPRINT_TEST_S3_BUCKET").unwrap_or_else(|_| "nearprint-test".to_owned());
        let store = AmazonS3Builder::from_env()
            .with_endpoint(&endpoint)
            .with_bucket_name(&bucket)
            .with_allow_http(true)
            .build()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        Ok(Some(Self { endpoint, bucket, client: Arc::new(Client { runtime, store }) }))
    }

    pub fn port(&self) -> Result<u16> {
        Ok(self.endpoint.trim_end_matches('/').rsplit(':').next().unwrap_or_default().parse()?)
    }

    pub fn store(&self) -> &AmazonS3 {
        &self.client.store
    }

    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.client.runtime.block_on(work)
    }

    pub fn put(&self, key: &str, content: Vec<u8>) -> Result<()> {
        self.block_on(self.store().put(&Path::from(key), content.into()))?;
        Ok(())
    }

    pub fn get(&self, key: &str) -> Result<Vec<u8>> {
        let got = async { self.store().get(&Path::from(key)).await?.bytes().await };
        Ok(self.block_on(got).map_err(|e| format!("{key}: {e}"))?.to_vec())
    }

    pub fn delete(&self, key: &str) -> Result<()> {
        Ok(self.block_on(self.store().delete(&Path::from(key)))?)
    }

    /// Every object below a prefix, by what its key has after it.
    pub fn read_all(&self, prefix: &str) -> Result<BTreeMap<String, Vec<u8>>> {
        let store = self.store();
        let all = async {
            let listed: Vec<_> = store.list(Some(&Path::from(prefix))).try_collect().await?;
            futures::stream::iter(listed)
                .map(|meta| async move {
                    let content = store.get(&meta.location).await?.bytes().await?;
                    Ok::<_, object_store::Error>((meta.location.as_ref().to_owned(), content.to_vec()))
                })
                .buffer_unordered(8)
                .try_collect::<Vec<_>>()
                .await
        };
        let cut = |(key, content): (String, Vec<u8>)| {
            (key.strip_prefix(prefix).unwrap_or(&key).trim_start_matches('/').to_owned(), content)
        };
        Ok(self.block_on(all)?.into_iter().map(cut).collect())
    }

    /// Makes what is below a prefix equal to `wanted`.
    pub fn restore(&self, prefix: &str, wanted: &BTreeMap<String, Vec<u8>>) -> Result<()> {
        let there = self.read_all(prefix)?;
        let store = self.store();
        let path = |key: &String| Path::from(format!("{prefix}/{key}"));
        let gone = there.keys().filter(|key| !wanted.contains_key(*key)).map(path);
        let changed = wanted.iter().filter(|(key, content)| there.get(*key) != Some(content));
        let changed = changed.map(|(key, content)| (path(key), content.clone()));
        let work = async {
            let deleted = futures::stream::iter(gone).map(|key| async move { store.delete(&key).await });
            deleted.buffer_unordered(8).try_collect::<()>().await?;
            let put = futures::stream::iter(changed)
                .map(|(key, content)| async move { store.put(&key, content.into()).await.map(drop) });
            put.buffer_unordered(8).try_collect::<()>().await
        };
        Ok(self.block_on(work)?)
    }

    /// Keys of multipart uploads that were begun and neither completed nor aborted. curl signs what object_store has no call for.
    pub fn open_uploads(&self) -> Result<Vec<String>> {
        let user = format!("{}:{}", std::env::var("AWS_ACCESS_KEY_ID")?, std::env::var("AWS_SECRET_ACCESS_KEY")?);
        let done = Command::new("curl")
            .args(["-fsS", "--max-time", "20", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", &user])
            .args(["-H", "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"])
            .arg(format!("{}/{}?uploads=", self.endpoint, self.bucket))
            .output()?;
        require!(done.status.success(), "listing uploads: {}", String::from_utf8_lossy(&done.stderr));
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let keys = text.split("<Upload>").skip(1).filter_map(|u| u.split_once("<Key>")?.1.split_once("</Key>"));
        Ok(keys.map(|(key, _)| key.to_owned()).collect())
    }
}
