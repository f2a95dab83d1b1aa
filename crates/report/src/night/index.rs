//! All published nights of a store on one page: a row each, and what changed from night to night.

use std::collections::BTreeMap;

use arrow::array::Array;
use arrow::datatypes::Float64Type;
use futures::TryStreamExt;
use maud::{Markup, html};
use nearprint_fault::{Result, counted, grouped, percent};
use nearprint_night::{NightRecord, published_files, published_nights};
use nearprint_parquet::schema::LOST_SHARE;
use nearprint_parquet::{Columns, ParquetFile};
use nearprint_pipeline::is_near_duplicate;
use nearprint_storage::Storage;

use super::hosts::{LargestHosts, largest_hosts};
use super::links::{after, night_page_name};
use super::notable::dropped_share;
use super::page::{hosts, picture};
use crate::page::chart::{Bars, DROPPED, KEPT, SKIPPED, Unit};
use crate::page::page;
use crate::page::pieces::{self, section};

/// The most nights of a chart, and the most whose decisions are read for what they lose.
const NIGHTS_SHOWN: usize = 31;
/// The most nights before the newest whose sources are looked at.
const HOST_NIGHTS: usize = 6;
/// The size of charts.
const SIZE: (u32, u32) = (400, 190);

/// The published nights of a store.
#[derive(Debug)]
pub struct Nights {
    /// The nights, oldest first.
    nights: Vec<NightRecord>,
    /// The nights whose manifests cannot be read, and the reasons.
    unread: Vec<(String, String)>,
    /// The mean of the lost shares of the near-duplicates of the newest nights that dropped some, by night.
    lost: BTreeMap<String, f64>,
    /// The sources of the newest night.
    hosts: LargestHosts,
}

impl Nights {
    /// Reads the manifests of all nights of a store, and of the newest ones the decisions.
    ///
    /// # Errors
    /// The store or a file of the newest nights cannot be read.
    pub async fn read(storage: &Storage, store: &str) -> Result<Self> {
        let (nights, unread) = published_nights(storage, store).await?;
        let newest = &nights[nights.len().saturating_sub(NIGHTS_SHOWN)..];
        let mut lost = BTreeMap::new();
        for night in newest {
            lost.extend(mean_loss(storage, store, &night.dt).await?.map(|mean| (night.dt.clone(), mean)));
        }
        let dates: Vec<&str> = newest.iter().map(|night| night.dt.as_str()).collect();
        let hosts = match dates.split_last() {
            Some((last, before)) => {
                let before = &before[before.len().saturating_sub(HOST_NIGHTS)..];
                largest_hosts(storage, store, last, before).await?
            }
            None => LargestHosts::default(),
        };
        Ok(Self { nights, unread, lost, hosts })
    }
}

/// Returns the mean of the lost shares of a night's near-duplicates, if any is known.
#[allow(clippy::cast_precision_loss, reason = "a mean of shares")]
async fn mean_loss(storage: &Storage, store: &str, dt: &str) -> Result<Option<f64>> {
    let (mut sum, mut n) = (0.0, 0_u64);
    for file in published_files(storage, store, dt, "decisions").await? {
        let parquet = ParquetFile::open(file).await?;
        let mut batches = parquet.stream(parquet.whole(&["reason", LOST_SHARE]))?;
        while let Some(batch) = batches.try_next().await? {
            let columns = Columns { batch: &batch, file: &parquet.file.url };
            let (reasons, lost) = (columns.strings("reason")?, columns.primitive::<Float64Type>(LOST_SHARE)?);
            let is_known = |&row: &usize| is_near_duplicate(reasons.value(row)) && lost.is_valid(row);
            for row in (0..batch.num_rows()).filter(is_known) {
                sum += lost.value(row);
                n += 1;
            }
        }
    }
    Ok((n > 0).then(|| sum / n as f64))
}

/// Makes the page of all nights. `has_page` says which of them have a page beside it.
///
/// # Errors
/// [`ErrorKind::Bug`](nearprint_fault::ErrorKind::Bug) if a chart cannot be drawn.
pub fn nights_page(nights: &Nights, has_page: impl Fn(&str) -> bool) -> Result<String> {
    let n = counted(nights.nights.len() as u64, "night");
    let body = html! {
        a.skip href="#main" { "To the content" }
        header {
            h1 { "Nights" }
            p.quiet { (n) " published, the newest first" }
        }
        main #main {
            (trends(nights)?)
            (section("nights", "All nights", &table(nights, has_page)))
            @if !nights.unread.is_empty() { (section("unread", "Nights that cannot be read", &unread(nights))) }
            @if nights.hosts.n_hosts > 0 {
                @let LargestHosts { hosts: largest, n_hosts } = &nights.hosts;
                (section("sources", "Sources", &html! { p { "Of the newest night." } (hosts(largest, *n_hosts)) }))
            }
        }
        footer { p { "Made by nearprint from the published results. The page holds no script and loads nothing." } }
    };
    Ok(page("nearprint: nights", &body))
}

fn trends(nights: &Nights) -> Result<Markup> {
    let shown = &nights.nights[nights.nights.len().saturating_sub(NIGHTS_SHOWN)..];
    if shown.len() < 2 {
        return Ok(html! {});
    }
    let of = |count: &dyn Fn(&NightRecord) -> u64| shown.iter().map(count).collect::<Vec<u64>>();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "hundredths of a percent")]
    let lost = |night: &NightRecord| nights.lost.get(&night.dt).map_or(0, |share| (share * 10_000.0).round() as u64);
    let decided = vec![
        (KEPT, of(&|night| night.counts.decisions.n_keep)),
        (DROPPED, of(&|night| night.counts.decisions.n_drop)),
        (SKIPPED, of(&|night| night.counts.decisions.n_skip)),
    ];
    let charts = [
        ("Kept, dropped and skipped documents", decided, Unit::Count),
        ("New and changed documents", vec![(KEPT, of(&new_or_changed))], Unit::Count),
        ("Stubs", vec![(DROPPED, of(&|night| night.counts.n_stubs()))], Unit::Count),
        ("Mean lost share of near-duplicates", vec![(DROPPED, of(&lost))], Unit::BasisPoints),
    ];
    let labels: Vec<String> = shown.iter().map(|night| night.dt.get(5..).unwrap_or(&night.dt).to_owned()).collect();
    let mut figures = Vec::new();
    for (title, parts, unit) in charts {
        if parts.iter().all(|(_, values)| values.iter().all(|value| *value == 0)) {
            figures.push(html! { figure { figcaption { (title) } p.quiet { "None in these nights." } } });
            continue;
        }
        let several = parts.len() > 1;
        let bars = Bars { size: SIZE, labels: labels.clone(), parts, unit };
        figures.push(html! {
            figure {
                figcaption { (title) }
                @if several { ul.legend { li.kept { "kept" } li.dropped { "dropped" } li.skipped { "skipped" } } }
                (picture(&bars, &format!("{title}; the table has the numbers"))?)
            }
        });
    }
    let what = format!("The last {}, the newest on the right", counted(shown.len() as u64, "night"));
    Ok(section("trend", "Trend", &html! { p { (what) } div.charts { @for figure in figures { (figure) } } }))
}

/// Returns the number of documents that the nights before did not have, or had with another text. 0 for nights of release
/// 0.2.0, which do not say it.
fn new_or_changed(night: &NightRecord) -> u64 {
    night.counts.by_recrawl.as_ref().map_or(0, |counts| counts.n_new + counts.n_changed)
}

fn table(nights: &Nights, has_page: impl Fn(&str) -> bool) -> Markup {
    let names = ["Documents", "New or changed", "Kept", "Dropped", "Share dropped", "Stubs", "Lost share"];
    let befores = std::iter::once(None).chain(nights.nights.iter().map(|night| Some(&night.dt)));
    let rows: Vec<_> = nights.nights.iter().zip(befores).collect();
    html! {
        div.scroll tabindex="0" role="region" aria-label="Table of nights" {
            table {
                caption { "All nights, newest first. The lost share is the mean of near-duplicates, of the newest " (NIGHTS_SHOWN) " nights" }
                thead { tr { th scope="col" { "Night" } @for name in names { th.n scope="col" { (name) } } th scope="col" { "Note" } } }
                tbody { @for (night, before) in rows.into_iter().rev() { (row(nights, night, before, has_page(&night.dt))) } }
            }
        }
    }
}

fn row(nights: &Nights, night: &NightRecord, before: Option<&String>, has_page: bool) -> Markup {
    let (counts, dt) = (&night.counts, &night.dt);
    let n_documents = counts.documents.n_documents;
    let dropped = dropped_share(counts.decisions.n_drop, n_documents).map_or_else(|| "–".to_owned(), percent);
    let lost = nights.lost.get(dt).map_or_else(|| "–".to_owned(), |share| percent(*share));
    let new = counts.by_recrawl.as_ref().map_or_else(|| "–".to_owned(), |_| grouped(new_or_changed(night)));
    let name = night_page_name(dt);
    html! {
        tr id=[before.map(|before| after(before))] {
            th.date scope="row" { @if has_page { a href=(name) { (dt) } } @else { (dt) } }
            td.n { (grouped(n_documents)) }
            td.n { (new) }
            td.n { (grouped(counts.decisions.n_keep)) }
            td.n { (grouped(counts.decisions.n_drop)) }
            td.n { (dropped) }
            td.n { (grouped(counts.n_stubs())) }
            td.n { (lost) }
            td { @if night.is_stale { "stale" } }
        }
    }
}

fn unread(nights: &Nights) -> Markup {
    html! { ul { @for (dt, reason) in &nights.unread { li { (dt) ": " (pieces::id(reason)) } } } }
}
