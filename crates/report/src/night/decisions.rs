//! The decisions of a night, read in one pass.

use std::collections::HashMap;

use arrow::array::Array;
use arrow::datatypes::{Float64Type, Int32Type, Int64Type};
use futures::TryStreamExt;
use nearprint_fault::Result;
use nearprint_night::{MeanLoss, published_files};
use nearprint_parquet::schema::{KEEP, LOST_SHARE, REFERENCE};
use nearprint_parquet::{Columns, ParquetFile, value};
use nearprint_pipeline::is_near_duplicate;
use nearprint_storage::Storage;

use super::night_report::{Distributions, Example, LargeCluster, ReportRequest};

/// The number of kept documents of a cluster that are named.
const KEPT_SHOWN: usize = 3;

/// The counts and examples that the decisions give.
#[derive(Debug, Default)]
pub(super) struct Decided {
    pub(super) largest_clusters: Vec<(String, u64)>,
    near: Vec<Example>,
    exact: Vec<Example>,
    pub(super) distributions: Distributions,
    sum_of_losses: f64,
    n_losses: u64,
}

impl Decided {
    pub(super) async fn read(storage: &Storage, request: &ReportRequest) -> Result<Self> {
        let mut decided = Self::default();
        for file in published_files(storage, &request.night.store, &request.night.dt, "decisions").await? {
            let parquet = ParquetFile::open(file).await?;
            let names: Vec<String> = parquet.schema().fields().iter().map(|f| f.name().clone()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut batches = parquet.stream(parquet.whole(&names))?;
            while let Some(batch) = batches.try_next().await? {
                let columns = Columns { batch: &batch, file: &parquet.file.url };
                decided.add(&columns, request.n_examples)?;
            }
        }
        Ok(decided)
    }

    /// Reads what stays of the largest clusters.
    pub(super) async fn what_stays(&self, storage: &Storage, request: &ReportRequest) -> Result<Vec<LargeCluster>> {
        let of = |(id, n): &(String, u64)| LargeCluster {
            cluster_id: id.clone(),
            n_documents: *n,
            ..LargeCluster::default()
        };
        let mut clusters: Vec<LargeCluster> = self.largest_clusters.iter().map(of).collect();
        let positions: HashMap<&str, usize> =
            self.largest_clusters.iter().enumerate().map(|(at, (id, _))| (id.as_str(), at)).collect();
        if clusters.is_empty() {
            return Ok(clusters);
        }
        for file in published_files(storage, &request.night.store, &request.night.dt, "decisions").await? {
            let parquet = ParquetFile::open(file).await?;
            let mut batches = parquet.stream(parquet.whole(&["doc_id", "decision", "cluster_id"]))?;
            while let Some(batch) = batches.try_next().await? {
                let columns = Columns { batch: &batch, file: &parquet.file.url };
                let (ids, decisions) = (columns.strings("doc_id")?, columns.strings("decision")?);
                let of_row = columns.strings("cluster_id")?;
                for row in (0..batch.num_rows()).filter(|&row| decisions.value(row) == KEEP && of_row.is_valid(row)) {
                    let Some(cluster) = positions.get(of_row.value(row)).and_then(|&at| clusters.get_mut(at)) else {
                        continue;
                    };
                    cluster.n_keep += 1;
                    if cluster.kept.len() < KEPT_SHOWN {
                        cluster.kept.push(ids.value(row).to_owned());
                    }
                }
            }
        }
        Ok(clusters)
    }

    /// Returns the examples: near-duplicates before exact copies, and those that lose most before the others.
    pub(super) fn take_examples(&mut self, n_examples: usize) -> Vec<Example> {
        let mut examples = std::mem::take(&mut self.near);
        examples.append(&mut self.exact);
        examples.truncate(n_examples);
        examples
    }

    /// Returns the mean of the lost shares of near-duplicates, if any is known.
    #[allow(clippy::cast_precision_loss, reason = "a mean of shares")]
    pub(super) fn mean_loss(&self) -> Option<MeanLoss> {
        let n_near = self.n_losses;
        (n_near > 0).then(|| MeanLoss { n_near, mean: self.sum_of_losses / n_near as f64 })
    }

    fn add(&mut self, columns: &Columns<'_>, n_examples: usize) -> Result<()> {
        let batch = columns.batch;
        let (ids, canonical, reasons) =
            (columns.strings("doc_id")?, columns.strings("canonical_id")?, columns.strings("reason")?);
        let distances = columns.primitive::<Int32Type>("distance")?;
        let (lost, references) = (columns.primitive::<Float64Type>(LOST_SHARE)?, columns.strings(REFERENCE)?);
        let (cluster, sizes) = (columns.strings("cluster_id")?, columns.primitive::<Int64Type>("cluster_size")?);
        for i in 0..batch.num_rows() {
            if sizes.is_valid(i) && sizes.value(i) > 1 && cluster.value(i) == ids.value(i) {
                self.add_cluster(ids.value(i), sizes.value(i).unsigned_abs(), n_examples);
            }
            if !canonical.is_valid(i) {
                continue;
            }
            let lost_share = value(lost, i);
            let distance = value(distances, i);
            let is_near = is_near_duplicate(reasons.value(i));
            if is_near {
                self.count(distance, lost_share);
            }
            let list = if is_near { &mut self.near } else { &mut self.exact };
            let reference = value(references, i);
            let is_alike = |example: &Example| {
                let of = (example.canonical_id.as_str(), example.reference.as_deref());
                of == (canonical.value(i), reference)
                    && example.distance == distance
                    && example.reason == reasons.value(i)
            };
            // An unknown share comes last; of equal ones the first document stays first. What has left the list does not come
            // back, for its shares only rise, so an example that is in it counts all that are alike.
            let first = list.partition_point(|example: &Example| example.lost_share > lost_share);
            let at = list.partition_point(|example: &Example| example.lost_share >= lost_share);
            if let Some(example) = list[first..at].iter_mut().find(|example| is_alike(example)) {
                example.n_alike += 1;
            } else if at < n_examples {
                let example = Example {
                    doc_id: ids.value(i).to_owned(),
                    canonical_id: canonical.value(i).to_owned(),
                    reference: reference.map(str::to_owned),
                    distance,
                    lost_share,
                    reason: reasons.value(i).to_owned(),
                    excerpts: None,
                    n_alike: 0,
                    texts: None,
                };
                list.insert(at, example);
                list.truncate(n_examples);
            }
        }
        Ok(())
    }

    /// Adds a cluster to the distribution and, if it is large enough, to the list: larger ones first, equal ones by id.
    fn add_cluster(&mut self, id: &str, size: u64, n_examples: usize) {
        *self.distributions.clusters_by_size.entry(1 << size.ilog2()).or_default() += 1;
        let at = self.largest_clusters.partition_point(|(known, n)| (*n, id) > (size, known.as_str()));
        if at < n_examples {
            self.largest_clusters.insert(at, (id.to_owned(), size));
            self.largest_clusters.truncate(n_examples);
        }
    }

    fn count(&mut self, distance: Option<i32>, lost_share: Option<f64>) {
        if let Some(distance) = distance.and_then(|distance| usize::try_from(distance).ok()) {
            add_at(&mut self.distributions.near_by_distance, distance);
        }
        let Some(share) = lost_share else {
            self.distributions.n_unknown_lost_share += 1;
            return;
        };
        self.sum_of_losses += share;
        self.n_losses += 1;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a hundredth of a share")]
        let hundredth = (share.clamp(0.0, 1.0) * 100.0) as usize;
        add_at(&mut self.distributions.near_by_lost_hundredth, hundredth);
    }
}

fn add_at(counts: &mut Vec<u64>, at: usize) {
    if counts.len() <= at {
        counts.resize(at + 1, 0);
    }
    counts[at] += 1;
}
