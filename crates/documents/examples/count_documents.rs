//! Counts the documents in the files of a folder or glob, and the characters of their texts.
//!
//! `cargo run --example count_documents -- sample_data/documents/dt=2026-11-20`
#![allow(clippy::print_stdout, reason = "an example")]

use std::error::Error;

use futures::TryStreamExt;
use nearprint_documents::{DocumentColumns, Documents, InputPolicy};
use nearprint_storage::Storage;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let place = std::env::args().nth(1).ok_or("name a folder, a glob or an S3 prefix")?.into();
    let (storage, columns) = (Storage::default(), DocumentColumns::default());
    let documents = Documents::open(&storage, &place, columns, &InputPolicy::default()).await?;
    let (mut n_documents, mut n_bytes) = (0, 0);
    for range in documents.ranges() {
        let mut batches = documents.read(&range).batches;
        while let Some(batch) = batches.try_next().await? {
            let texts = (0..batch.rows.len()).filter_map(|row| batch.text(row).ok().flatten());
            n_bytes += texts.map(str::len).sum::<usize>();
            n_documents += batch.rows.len();
        }
    }
    println!("{n_documents} documents, {n_bytes} bytes of text");
    Ok(())
}
