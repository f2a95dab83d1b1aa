//! The plan of a join on a cluster, through the public functions.

use nearprint_pipeline::{ClusterLimit, ClusterPlan, ClusterRequest, PipelineError, PlanRequest, plan_on_cluster};

const ROW_GROUP: usize = 1 << 20;

fn request(existing_rows: u64, query_rows: u64, max_distance: u32) -> PlanRequest {
    PlanRequest { existing_rows, query_rows, bits: 64, max_distance, runs: 1, itself: true }
}

fn cluster(workers: usize) -> ClusterRequest {
    ClusterRequest {
        workers,
        threads: 4,
        worker_memory: 16 << 30,
        bandwidth: 400_000_000,
        sketches: false,
        near_duplicates: 0.3,
        measured_over_model: 1.5,
    }
}

fn plan(request: &PlanRequest, cluster: &ClusterRequest) -> ClusterPlan {
    plan_on_cluster(request, cluster).unwrap()
}

#[test]
fn more_workers_share_the_same_bytes_and_map_sooner_but_each_loads_the_batch() {
    let request = request(10_000_000_000, 10_000_000, 3);
    let plans: Vec<ClusterPlan> = [1, 4, 16, 64, 256].map(|workers| plan(&request, &cluster(workers))).into();
    for (few, many) in plans.iter().zip(&plans[1..]) {
        assert_eq!((few.n_parts, few.bytes.read), (many.n_parts, many.bytes.read));
        assert!(many.seconds.map < few.seconds.map && many.seconds.read < few.seconds.read, "{many:?}");
        assert!(many.seconds.load >= few.seconds.load && many.bytes.batch == few.bytes.batch, "{many:?}");
        assert!(many.bytes.read_by_worker < few.bytes.read_by_worker, "{many:?}");
    }
}

#[test]
fn every_worker_has_three_tasks_as_long_as_there_are_row_groups() {
    for (workers, existing) in [(1, 1 << 30), (100, 1 << 33), (1000, 1 << 36)] {
        let planned = plan(&request(existing, 1_000_000, 3), &cluster(workers));
        assert!(planned.n_tasks >= 3 * workers as u64 && planned.tasks_of_worker >= 3, "{planned:?}");
        assert!(planned.piece_rows >= ROW_GROUP, "{planned:?}");
    }
    let small = PlanRequest { itself: false, ..request(1 << 30, 1_000_000, 3) };
    let few = plan(&small, &cluster(1000));
    assert_eq!((few.piece_rows, few.n_tasks, few.tasks_of_worker), (ROW_GROUP, 1024, 2));
    // 1,000 workers are then no faster than 512, of which each has as many tasks.
    let half = plan(&small, &cluster(512));
    assert_eq!((half.tasks_of_worker, half.seconds.map.to_bits()), (2, few.seconds.map.to_bits()));
}

#[test]
fn a_batch_whose_tables_do_not_fit_is_joined_in_parts_and_each_part_reads_everything() {
    let large = ClusterRequest { worker_memory: 64 << 30, ..cluster(20) };
    let small = ClusterRequest { worker_memory: 15 << 30, ..large.clone() };
    let request = request(10_000_000_000, 100_000_000, 3);
    let (whole, parts) = (plan(&request, &large), plan(&request, &small));
    assert_eq!(whole.n_parts, 1, "{whole:?}");
    assert!(parts.n_parts > 1, "{parts:?}");
    let n_parts = u32::try_from(parts.n_parts).unwrap();
    assert!((parts.bytes.fingerprints / whole.bytes.fingerprints / f64::from(n_parts) - 1.0).abs() < 1e-9);
    assert!(parts.bytes.worker_memory < whole.bytes.worker_memory, "{parts:?}");
    assert!(parts.seconds.read > whole.seconds.read && parts.n_tasks % u64::from(n_parts) == 0, "{parts:?}");
}

#[test]
fn a_batch_that_no_worker_can_hold_is_refused_with_the_flag_and_the_bytes() {
    let request = request(10_000_000_000, 1_000_000_000, 3);
    let refused = plan_on_cluster(&request, &cluster(20)).unwrap_err();
    assert!(matches!(&refused, PipelineError::Config { key, .. } if key == "--worker-memory"), "{refused:?}");
    let message = refused.to_string();
    assert!(message.contains("92000000000 bytes") && message.contains("split the night"), "{message}");
}

#[test]
fn the_driver_is_bounded_by_the_batch_and_not_by_the_existing_fingerprints() {
    let driver = |existing, queries| {
        let planned = plan(&request(existing, queries, 3), &cluster(100));
        (planned.bytes.driver_memory, planned.bytes.batch)
    };
    let small = driver(1_000_000_000, 1_000_000);
    let (memory, batch) = driver(100_000_000_000, 1_000_000);
    // The 240 pairs by chance are 31 kB.
    assert!(batch == small.1 && memory - small.0 < 1 << 16, "{memory} {}", small.0);
    assert!(driver(1_000_000_000, 10_000_000).0 > 5 * small.0);
}

#[test]
fn pairs_by_chance_are_shuffled_without_sketches_and_read_with_them() {
    let request = request(1_000_000_000, 1_000_000, 10);
    let without = plan(&request, &cluster(20));
    let with = plan(&request, &ClusterRequest { sketches: true, ..cluster(20) });
    // C(64, 0) + … + C(64, 10), about 1.8e11, in 2^64, of 10^15 and of the batch's own 5 · 10^11 pairs.
    assert!((without.chance_pairs / 1.0e7 - 1.0).abs() < 0.1, "{without:?}");
    assert!((without.pairs - with.pairs - without.chance_pairs).abs() < 1.0, "{without:?}");
    assert!(without.bytes.sketches == 0.0 && without.bytes.shuffled > 10.0 * with.bytes.shuffled, "{without:?}");
    // With a candidate in most pages, the column is read once: 32 bytes for each fingerprint.
    assert!((3.2e10..3.4e10).contains(&with.bytes.sketches), "{with:?}");
    assert!(with.bytes.batch > without.bytes.batch && with.bytes.worker_memory > 0, "{with:?}");
}

#[test]
fn candidates_of_a_night_grow_as_the_product_of_both_sets() {
    let of = |existing, queries| {
        let roomy = ClusterRequest { sketches: true, worker_memory: 1 << 40, ..cluster(100) };
        plan(&request(existing, queries, 12), &roomy).chance_pairs
    };
    let one = of(1_000_000_000, 1_000_000);
    assert!((of(100_000_000_000, 1_000_000) / one / 100.0 - 1.0).abs() < 1e-2);
    assert!((of(1_000_000_000, 100_000_000) / one / 100.0 - 1.0).abs() < 1e-1);
}

#[test]
fn the_plan_names_what_the_join_waits_for() {
    let usual = request(10_000_000_000, 1_000_000, 3);
    let without_pairs = ClusterRequest { near_duplicates: 0.0, ..cluster(10) };
    let slow = ClusterRequest { bandwidth: 10_000_000, ..without_pairs.clone() };
    assert_eq!(plan(&usual, &slow).limit, ClusterLimit::StorageBandwidth);
    let hard = PlanRequest { max_distance: 12, ..usual };
    let near = ClusterRequest { bandwidth: 10_000_000_000, sketches: true, ..without_pairs.clone() };
    assert_eq!(plan(&hard, &near).limit, ClusterLimit::Processors);
    let wide = ClusterRequest { workers: 2000, worker_memory: 64 << 30, bandwidth: 5_000_000, ..without_pairs.clone() };
    assert_eq!(plan(&request(1_000_000_000, 50_000_000, 0), &wide).limit, ClusterLimit::BatchToWorkers);
    let none = ClusterRequest { workers: 1, ..without_pairs.clone() };
    assert_eq!(plan(&request(0, 100, 3), &none).limit, ClusterLimit::Engine);
    let pairs = ClusterRequest { near_duplicates: 1.0, worker_memory: 64 << 30, ..without_pairs };
    assert_eq!(plan(&request(0, 20_000_000, 3), &pairs).limit, ClusterLimit::Driver);
}

#[test]
fn the_whole_is_the_sum_of_its_steps_of_which_reading_and_mapping_overlap() {
    for (existing, queries, k, workers) in
        [(0, 0, 3, 1), (0, 1_000_000, 3, 7), (1_000_000_000, 1, 12, 3), (10_000_000_000, 5_000_000, 8, 40)]
    {
        let planned = plan(&request(existing, queries, k), &cluster(workers));
        let of = planned.seconds;
        let steps = [of.load, of.read, of.map, of.shuffle, of.driver, of.engine];
        assert!(steps.iter().all(|seconds| seconds.is_finite() && *seconds >= 0.0), "{planned:?}");
        let sum = of.load + of.read.max(of.map) + of.shuffle + of.driver + of.engine;
        assert!((of.total - sum).abs() < 1e-9, "{planned:?}");
    }
}

#[test]
fn a_slower_worker_changes_seconds_and_nothing_else() {
    let request = request(10_000_000_000, 1_000_000, 8);
    let (fast, slow) = (cluster(20), ClusterRequest { measured_over_model: 3.0, ..cluster(20) });
    let (fast, slow) = (plan(&request, &fast), plan(&request, &slow));
    assert!(slow.seconds.map > 1.5 * fast.seconds.map, "{slow:?}");
    let same =
        ClusterPlan { seconds: fast.seconds, limit: fast.limit, measured_over_model: fast.measured_over_model, ..slow };
    assert_eq!(same, fast);
}
