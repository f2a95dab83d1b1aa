//! `nearprint plan --workers`, as it is run from a shell.

use crate::support::nearprint;

fn arguments(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

#[test]
fn plan_says_how_a_cluster_would_do_a_join() {
    let sizes = "--existing-rows 10000000000 --query-rows 2^20 --self --max-distance 12 --sketches";
    let text = format!("plan {sizes} --workers 20 --threads 8 --worker-memory 16GiB");
    let words = nearprint(&arguments(&text)).expect_success().stdout;
    for line in ["on 20 workers of 8 threads", "\ntasks ", "\nmemory "] {
        assert!(words.contains(line), "{line}: {words}");
    }
    let plan = nearprint(&[&arguments(&text)[..], &["--json"]].concat()).expect_success().json();
    assert_eq!((plan["workers"].as_u64(), plan["threads"].as_u64()), (Some(20), Some(8)), "{plan}");
    assert!(plan["tasks_of_worker"].as_u64().unwrap() >= 3, "{plan}");
    assert!((1 << 27..16_u64 << 30).contains(&plan["memory_bytes"].as_u64().unwrap()), "{plan}");
}

#[test]
fn a_batch_that_workers_hold_in_parts_says_how_many() {
    let cluster = "--self --sketches --workers 20 --worker-memory 1GiB";
    let text = format!("plan --existing-rows 2^33 --query-rows 100000000 --max-distance 3 {cluster}");
    let words = nearprint(&arguments(&text)).expect_success().stdout;
    let plan = nearprint(&[&arguments(&text)[..], &["--json"]].concat()).expect_success().json();
    assert!(plan["n_parts"].as_u64().unwrap() > 4, "{plan}");
    let n_parts = plan["n_parts"].as_u64().unwrap();
    let pairs =
        format!("{n_parts} parts, one after another; beside them, {} pairs of parts", n_parts * (n_parts - 1) / 2);
    assert!(words.replace(',', "").contains(&pairs.replace(',', "")), "{words}");
    assert!(!words.contains("more than it is given"), "{words}");
    let little = text.replace("1GiB", "100MB").replace("query-rows 100000000", "query-rows 1000000");
    let words = nearprint(&arguments(&little)).expect_success().stdout;
    assert!(words.contains(" of a worker, beside its virtual machine: more than it is given"), "{words}");
}

#[test]
fn a_cluster_that_cannot_hold_a_part_of_the_batch_is_a_bad_configuration() {
    let cluster = "--workers 20 --worker-memory 32MiB";
    let text = format!("plan --existing-rows 2^33 --query-rows 100000000 --max-distance 3 {cluster}");
    let done = nearprint(&arguments(&text));
    assert_eq!(done.code, 78, "{}", done.stderr);
    assert!(done.error().contains("--worker-memory") && done.error().contains("split the night"), "{}", done.stderr);
}

#[test]
fn options_of_a_cluster_without_one_are_usage_errors() {
    for wrong in [
        "--workers 20",
        "--worker-memory 1GiB",
        "--sketches",
        "--workers 0 --worker-memory 1GiB",
        "--workers 2 --worker-memory 1GiB --memory-limit 1GiB",
    ] {
        let text = format!("plan --existing-rows 2^30 --query-rows 2^20 --max-distance 3 {wrong}");
        assert_eq!(nearprint(&arguments(&text)).code, 64, "{wrong}");
    }
}
