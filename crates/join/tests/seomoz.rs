//! seomoz's simhash `find_all` on the same fingerprints. See `data/README.md`.

use nearprint_join::{Clusters, Kernel, MapScratch, Queries, TablePlan, UnionFind};
use serde_json::Value;

fn number(value: &Value) -> u64 {
    value.as_str().unwrap().parse().unwrap()
}

fn numbers(values: &Value) -> Vec<u64> {
    values.as_array().unwrap().iter().map(number).collect()
}

#[test]
fn a_self_join_finds_the_pairs_and_clusters_of_seomoz_find_all() {
    let (mut n_runs, mut n_pairs) = (0, 0);
    for line in include_str!("data/seomoz_find_all.jsonl").lines() {
        let run: Value = serde_json::from_str(line).unwrap();
        let k = u32::try_from(run["k"].as_u64().unwrap()).unwrap();
        let mut expected: Vec<(u64, u64)> =
            run["pairs"].as_array().unwrap().iter().map(|pair| (number(&pair[0]), number(&pair[1]))).collect();
        expected.sort_unstable();
        for plan in TablePlan::alternatives(64, k) {
            let queries = Queries::try_new(numbers(&run["hashes"]), plan, Kernel::best()).unwrap();
            let n_values = queries.values().len();
            let mut union = UnionFind::new(u32::try_from(n_values).unwrap());
            let mut pairs = Vec::new();
            queries.map_self(0..n_values, &mut MapScratch::default(), |pair| {
                union.union(pair.query, pair.existing);
                pairs.push((queries.values()[pair.query as usize], queries.values()[pair.existing as usize]));
            });
            pairs.sort_unstable();
            assert_eq!(pairs, expected, "{}", run["id"]);
            let clusters = Clusters::of(union, u32::try_from(n_values).unwrap());
            let rows = 0..u32::try_from(n_values).unwrap();
            let n_clusters = rows.filter(|&row| clusters.first_row(row) == row && clusters.n_rows(row) > 1).count();
            assert_eq!(n_clusters as u64, run["clusters"].as_u64().unwrap(), "{}", run["id"]);
        }
        n_runs += 1;
        n_pairs += expected.len();
    }
    println!("{n_runs} runs, {n_pairs} pairs");
    assert_eq!(n_runs, 12);
}
