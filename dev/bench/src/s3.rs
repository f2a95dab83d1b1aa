//! Writes files to an object store, and measures the cost of merely reading them there.

use std::ops::Range;
use std::path::{Path as LocalPath, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use futures::{StreamExt, TryStreamExt};
use nearprint_storage::Storage;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::{Result, print};

/// The objects to read.
#[derive(Debug, clap::Args)]
pub struct Read {
    /// Prefixes or objects, as s3://bucket/prefix. The server and the credentials come from the environment, as for nearprint.
    #[arg(required = true)]
    prefixes: Vec<String>,
    /// Largest number of bytes that a request asks for.
    #[arg(long, default_value_t = 8 << 20, value_parser = clap::value_parser!(u64).range(1..))]
    request_bytes: u64,
    /// Number of requests that are under way at once.
    #[arg(long, default_value_t = 8)]
    in_flight: usize,
    /// Number of threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

impl Read {
    /// Reads every byte of the objects in ranges and drops it. Fails if a range has another size than the listing says.
    pub fn run(&self) -> Result<()> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(self.threads.max(1)).enable_all().build()?;
        let started = Instant::now();
        let (n_objects, received) = runtime.block_on(self.read())?;
        let seconds = started.elapsed().as_secs_f64();
        let n_bytes: u64 = received.iter().sum();
        print(&serde_json::json!({
            "operation": "s3-read", "request_bytes": self.request_bytes, "in_flight": self.in_flight, "threads": self.threads,
            "n_objects": n_objects, "n_requests": received.len(), "n_bytes": n_bytes, "seconds": seconds,
            "mb_per_second": n_bytes as f64 / 1e6 / seconds,
        }))
    }

    /// Returns the number of objects, and the bytes of each request.
    async fn read(&self) -> Result<(usize, Vec<u64>)> {
        let mut ranges = Vec::new();
        let mut n_objects = 0;
        for prefix in &self.prefixes {
            let (store, path) = opened(prefix)?;
            let mut objects: Vec<ObjectMeta> = store.list(Some(&path)).try_collect().await?;
            if objects.is_empty() {
                objects.push(store.head(&path).await?);
            }
            objects.sort_by(|a, b| a.location.cmp(&b.location));
            n_objects += objects.len();
            let cut = |object: ObjectMeta| {
                let starts = (0..object.size).step_by(usize::try_from(self.request_bytes)?);
                let ranges = starts.map(|start| start..object.size.min(start + self.request_bytes));
                let (store, path) = (Arc::clone(&store), object.location);
                Ok(ranges.map(|range| (Arc::clone(&store), path.clone(), range)).collect::<Vec<_>>())
            };
            ranges.extend(objects.into_iter().map(cut).collect::<Result<Vec<_>>>()?.into_iter().flatten());
        }
        // Each request is a task of its own, so that the answers are received on all threads.
        let sent = ranges.into_iter().map(|(store, path, range)| async move {
            let received = tokio::spawn(async move { received(&store, &path, range).await });
            received.await?
        });
        let received = futures::stream::iter(sent).buffer_unordered(self.in_flight.max(1)).try_collect().await?;
        Ok((n_objects, received))
    }
}

/// Returns the store of a bucket, and the path behind it.
fn opened(url: &str) -> Result<(Arc<AmazonS3>, Path)> {
    let place = url.strip_prefix("s3://").ok_or_else(|| format!("{url}: write it as s3://bucket/prefix"))?;
    let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
    let store = AmazonS3Builder::from_env().with_bucket_name(bucket).build()?;
    Ok((Arc::new(store), Path::parse(prefix)?))
}

/// Receives a range without keeping it, and returns its number of bytes.
async fn received(store: &AmazonS3, path: &Path, range: Range<u64>) -> Result<u64> {
    let options = GetOptions { range: Some(range.clone().into()), ..GetOptions::default() };
    let mut body = store.get_opts(path, options).await?.into_stream();
    let mut n_bytes = 0;
    while let Some(bytes) = body.try_next().await? {
        n_bytes += bytes.len() as u64;
    }
    if n_bytes == range.end - range.start {
        Ok(n_bytes)
    } else {
        Err(format!("{path}: {n_bytes} bytes came for {range:?}").into())
    }
}

/// The files to write.
#[derive(Debug, clap::Args)]
pub struct Upload {
    /// Local folder.
    folder: PathBuf,
    /// Where its files go, as s3://bucket/prefix.
    prefix: String,
}

impl Upload {
    /// Writes all files below the folder under the same names, as nearprint writes files.
    pub fn run(&self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let started = Instant::now();
        let names = names(&self.folder)?;
        let place = Storage::default().folder(&self.prefix)?;
        let n_bytes: u64 = runtime.block_on(async {
            let mut n_bytes = 0;
            for name in &names {
                let from = self.folder.join(name);
                place.join(name).put_file(&from).await?;
                n_bytes += std::fs::metadata(&from)?.len();
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(n_bytes)
        })?;
        print(&serde_json::json!({
            "operation": "s3-upload", "n_objects": names.len(), "n_bytes": n_bytes, "seconds": started.elapsed().as_secs_f64(),
        }))
    }
}

/// Returns the paths of all files below a folder, sorted.
fn names(folder: &LocalPath) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|name| format!("{}: not UTF-8", name.display()))?;
        if entry.file_type()?.is_dir() {
            names.extend(self::names(&entry.path())?.into_iter().map(|below| format!("{name}/{below}")));
        } else {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
