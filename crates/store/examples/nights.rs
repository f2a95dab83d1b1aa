//! The nights of a store.
//!
//! `cargo run --example nights -- out/store`
#![allow(clippy::print_stdout, reason = "an example")]

use std::error::Error;

use nearprint_storage::Storage;
use nearprint_store::Store;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("name a store")?;
    let folder = Storage::default().folder(&url)?;
    let store = Store::open_existing(&folder).await?.ok_or("there is no store")?;
    for night in store.info().nights {
        println!("{} {} fingerprints, published in {}", night.dt, night.n_fingerprints, night.output);
    }
    Ok(())
}
