//! The rule by which C++ decides which of many equally heavy features are among the `n` heaviest.

use std::cmp::Ordering;

/// Leaves the `n` heaviest of `features`, the heaviest first.
///
/// `std::partial_sort` of GNU's libstdc++ determines which of several equals stay, and in which order: it builds a heap
/// of the first `n` with the lightest at its root, replaces the root by every later one that is heavier, and then does
/// a heap sort. A heap is not stable, so the rule has no shorter form. Published fingerprints depend on it: in cppjieba
/// most words of a text that is not Chinese have the same weight.
pub(crate) fn keep_heaviest<T>(features: &mut Vec<T>, n: usize, weight: impl Fn(&T) -> f64) {
    let n = n.min(features.len());
    if n == 0 {
        features.clear();
        return;
    }
    let heavier = |a: &T, b: &T| weight(a).total_cmp(&weight(b)) == Ordering::Greater;
    for root in (0..n / 2).rev() {
        sift(&mut features[..n], root, &heavier);
    }
    for later in n..features.len() {
        if heavier(&features[later], &features[0]) {
            features.swap(0, later);
            sift(&mut features[..n], 0, &heavier);
        }
    }
    features.truncate(n);
    for last in (1..n).rev() {
        features.swap(0, last);
        sift(&mut features[..last], 0, &heavier);
    }
    debug_assert!(features.is_sorted_by(|a, b| !heavier(b, a)), "the heaviest feature comes first");
}

/// Lets the element at `root` sink to a leaf, always towards the lighter child (the right one of equals), and rise
/// again as far as it is lighter than its parents.
fn sift<T>(heap: &mut [T], root: usize, heavier: &impl Fn(&T, &T) -> bool) {
    let mut at = root;
    loop {
        let (left, right) = (2 * at + 1, 2 * at + 2);
        let child = if right < heap.len() {
            if heavier(&heap[right], &heap[left]) { left } else { right }
        } else if left < heap.len() {
            left
        } else {
            break;
        };
        heap.swap(at, child);
        at = child;
    }
    while at > root {
        let parent = (at - 1) / 2;
        if !heavier(&heap[parent], &heap[at]) {
            break;
        }
        heap.swap(parent, at);
        at = parent;
    }
}
