//! The plan of a join on a cluster, through the public functions.

use nearprint_fault::ErrorKind;
use nearprint_pipeline::{ClusterPlan, ClusterRequest, PlanRequest, Resources, plan_on_cluster};

const ROW_GROUP: usize = 1 << 20;

fn request(existing_rows: u64, query_rows: u64, max_distance: u32) -> PlanRequest {
    PlanRequest { existing_rows, query_rows, bits: 64, max_distance, runs: 1, itself: true }
}

fn cluster(workers: usize) -> ClusterRequest {
    ClusterRequest { workers, threads: 4, worker_memory: 16 << 30, sketches: false }
}

fn plan(request: &PlanRequest, cluster: &ClusterRequest) -> ClusterPlan {
    plan_on_cluster(request, cluster, &Resources::default()).unwrap()
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
}

#[test]
fn a_batch_that_does_not_fit_is_joined_in_parts_and_takes_no_more_than_a_worker_has() {
    let request = request(10_000_000_000, 100_000_000, 3);
    let of_memory = |worker_memory| plan(&request, &ClusterRequest { worker_memory, sketches: true, ..cluster(20) });
    let whole = of_memory(64 << 30);
    assert_eq!(whole.n_parts, 1, "{whole:?}");
    let mut before = whole;
    for worker_memory in [8 << 30, 4 << 30, 2 << 30, 1 << 30] {
        let parts = of_memory(worker_memory);
        assert!(parts.n_parts > before.n_parts && parts.n_tasks % parts.n_parts as u64 == 0, "{parts:?}");
        assert!(parts.memory_bytes < before.memory_bytes && parts.memory_bytes < worker_memory, "{parts:?}");
        before = parts;
    }
}

#[test]
fn more_memory_never_makes_a_join_scan_or_be_refused() {
    let sizes = [(10_000_000_000, 400_000_000, 12, 8, true), (10_000_000_000, 100_000_000, 12, 8, true)]
        .into_iter()
        .chain([(0, 14_000_000, 12, 8, true), (1_000_000_000, 14_000_000, 12, 8, true)])
        .chain([(1_000_000_000, 14_000_000, 3, 4, false), (1_000_000_000, 14_000_000, 3, 4, true)]);
    for (existing, queries, max_distance, threads, sketches) in sizes {
        let (mut was_planned, mut parts_before) = (false, usize::MAX);
        for worker_memory in (28..38).flat_map(|log| [1 << log, 3 << (log - 1)]) {
            let of = ClusterRequest { worker_memory, threads, sketches, ..cluster(20) };
            match plan_on_cluster(&request(existing, queries, max_distance), &of, &Resources::default()) {
                Ok(plan) => {
                    assert!(!plan.strategy.starts_with("scan"), "{existing}, {queries}, {worker_memory}: {plan:?}");
                    assert!(plan.n_parts / 2 <= parts_before, "{existing}, {queries}, {worker_memory}: {plan:?}");
                    (was_planned, parts_before) = (true, plan.n_parts);
                }
                Err(error) => assert!(!was_planned, "{existing}, {queries}, {worker_memory}: {error}"),
            }
        }
        assert!(was_planned, "{existing}, {queries}");
    }
}

#[test]
fn sketches_take_memory_of_every_worker() {
    let request = request(1_000_000_000, 10_000_000, 3);
    let (without, with) =
        (plan(&request, &cluster(20)), plan(&request, &ClusterRequest { sketches: true, ..cluster(20) }));
    assert_eq!(with.memory_bytes - without.memory_bytes, 10_000_000 * 36);
}

#[test]
fn a_batch_of_which_no_worker_can_hold_a_part_is_refused_with_the_flag_and_the_bytes() {
    let request = request(10_000_000_000, 1_000_000_000, 3);
    let small = ClusterRequest { worker_memory: 1 << 28, ..cluster(20) };
    let refused = plan_on_cluster(&request, &small, &Resources::default()).unwrap_err();
    assert_eq!(refused.of_key(), Some("--worker-memory"), "{refused:?}");
    let message = refused.to_string();
    assert!(
        message.contains("each worker holds a part of the query batch") && message.contains("split the night"),
        "{message}"
    );
}

#[test]
fn the_kernel_of_the_driver_is_the_one_that_is_planned_for() {
    let plan_for = |kernel: &str| {
        let resources = Resources { kernel: Some(kernel.to_owned()), ..Resources::default() };
        plan_on_cluster(&request(1 << 33, 1 << 20, 3), &cluster(20), &resources)
    };
    assert!(plan_for("scalar").is_ok());
    // No processor has the instructions of both.
    let refused: Vec<ErrorKind> =
        ["neon", "avx2"].into_iter().filter_map(|kernel| Some(plan_for(kernel).err()?.kind())).collect();
    assert!(refused.contains(&ErrorKind::Usage), "{refused:?}");
}
