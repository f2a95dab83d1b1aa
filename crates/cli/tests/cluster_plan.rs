//! `nearprint plan --workers`, as it is run from a shell.

use crate::support::nearprint;

const SIZES: &str = "--existing-rows 10000000000 --query-rows 2^20 --self --max-distance 12 --sketches";
const CLUSTER: &str = "--workers 20 --threads 8 --worker-memory 16GiB --bandwidth 500MB";

fn arguments(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

#[test]
fn plan_says_how_a_cluster_would_do_a_join_and_what_it_waits_for() {
    let text = format!("plan {SIZES} {CLUSTER} --measured-over-model 1.6");
    let words = nearprint(&arguments(&text)).expect_success().stdout;
    for line in ["on 20 workers of 8 threads", "\nbatch ", "\nshuffles ", "\nmemory ", "\nwaits for ", "as given"] {
        assert!(words.contains(line), "{line}: {words}");
    }
    let plan = nearprint(&[&arguments(&text)[..], &["--json"]].concat()).expect_success().json();
    assert_eq!((plan["workers"].as_u64(), plan["threads"].as_u64()), (Some(20), Some(8)), "{plan}");
    assert_eq!(plan["measured_over_model"], 1.6, "{plan}");
    let seconds = |step: &str| plan["seconds"][step].as_f64().unwrap();
    let bytes = |what: &str| plan["bytes"][what].as_f64().unwrap();
    assert!(seconds("total") > seconds("map") && seconds("total") > seconds("read"), "{plan}");
    // 320 GB of sketches, since each page has a candidate, and 43 GB of fingerprints.
    assert!((3.2e11..3.4e11).contains(&bytes("sketches")), "{plan}");
    assert!((4.0e10..4.5e10).contains(&bytes("fingerprints")), "{plan}");
    assert!(plan["tasks_of_worker"].as_u64().unwrap() >= 3 && plan["limit"].is_string(), "{plan}");
    assert!(bytes("batch") < bytes("driver_memory"), "{plan}");
}

#[test]
fn the_speed_of_a_worker_is_measured_where_it_is_not_given() {
    let text = format!("plan {SIZES} {CLUSTER}");
    let words = nearprint(&arguments(&text)).expect_success().stdout;
    assert!(words.contains("measured on this machine"), "{words}");
}

#[test]
fn a_cluster_that_cannot_hold_the_batch_is_a_bad_configuration() {
    let cluster = "--workers 20 --worker-memory 1GiB --bandwidth 200MB";
    let text = format!("plan --existing-rows 2^33 --query-rows 100000000 --max-distance 3 {cluster}");
    let done = nearprint(&arguments(&text));
    assert_eq!(done.code, 78, "{}", done.stderr);
    assert!(done.error().contains("--worker-memory") && done.error().contains("split the night"), "{}", done.stderr);
}

#[test]
fn options_of_a_cluster_without_one_are_usage_errors() {
    for wrong in [
        "--workers 20",
        "--workers 20 --worker-memory 1GiB",
        "--worker-memory 1GiB",
        "--bandwidth 200MB",
        "--sketches",
        "--near-duplicates 0.2",
        "--workers 0 --worker-memory 1GiB --bandwidth 200MB",
        "--workers 2 --worker-memory 1GiB --bandwidth 200MB --near-duplicates 1.5",
        "--workers 2 --worker-memory 1GiB --bandwidth 200MB --measured-over-model 0",
        "--workers 2 --worker-memory 1GiB --bandwidth 200MB --memory-limit 1GiB",
    ] {
        let text = format!("plan --existing-rows 2^30 --query-rows 2^20 --max-distance 3 {wrong}");
        assert_eq!(nearprint(&arguments(&text)).code, 64, "{wrong}");
    }
}
