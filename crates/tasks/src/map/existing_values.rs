//! Values of existing documents in a key that are mapped together, and the rows behind them.

use std::ops::Range;

use nearprint_join::{Kernel, Width};

use nearprint_storage::row_number;

/// Distinct values of some row groups in a key, ascending, and the rows behind each. Rows count from the first row
/// group on.
#[derive(Debug)]
pub(super) struct ExistingValues {
    values: Vec<u64>,
    /// `starts[v]..starts[v + 1]` are the places of value v. Empty if each value has one place, its own position.
    starts: Vec<u32>,
    /// The rows by place. Empty if places are rows, because the values ascend by row.
    rows: Vec<u32>,
}

impl ExistingValues {
    /// Groups the rows of some values; `found` has both, in ascending order.
    pub(super) fn of_rows(found: Vec<(u64, u32)>) -> Self {
        let (values, rows) = found.into_iter().unzip();
        let mut grouped = Self { values, starts: Vec::new(), rows };
        grouped.collapse();
        grouped
    }

    /// Groups the fingerprints of all rows, which are in row order.
    pub(super) fn group(kernel: Kernel, fingerprints: Vec<u64>) -> Self {
        let mut grouped = Self { values: fingerprints, starts: Vec::new(), rows: Vec::new() };
        if u64::is_ascending(kernel, &grouped.values) {
            return grouped;
        }
        if !grouped.values.is_sorted() {
            let mut order: Vec<(u64, u32)> = grouped.values.iter().copied().zip(0..).collect();
            order.sort_unstable();
            grouped.values.clear();
            grouped.values.extend(order.iter().map(|(value, _)| value));
            grouped.rows.extend(order.iter().map(|(_, row)| row));
        }
        grouped.collapse();
        debug_assert!(grouped.values.is_sorted_by(|a, b| a < b), "values ascend, each once: their places number them");
        debug_assert!(
            grouped.rows.is_empty() || grouped.rows.len() == grouped.n_places(),
            "each place has its row, or is its row"
        );
        grouped
    }

    /// Gives up the memory of the values.
    pub(super) fn into_room(self) -> Vec<u64> {
        self.values
    }

    fn collapse(&mut self) {
        let mut n_values = 0;
        for place in 0..self.values.len() {
            let value = self.values[place];
            if n_values == 0 || self.values[n_values - 1] != value {
                self.values[n_values] = value;
                n_values += 1;
                self.starts.push(row_number(place));
            }
        }
        self.starts.push(row_number(self.values.len()));
        self.values.truncate(n_values);
    }

    /// Returns the distinct values, ascending.
    pub(super) fn values(&self) -> &[u64] {
        &self.values
    }

    /// Returns the number of rows of all values.
    pub(super) fn n_places(&self) -> usize {
        self.starts.last().map_or(self.values.len(), |&end| end as usize)
    }

    /// Returns the number of rows with a value.
    pub(super) fn n_rows(&self, value: u32) -> usize {
        self.places(value).len()
    }

    /// Returns the rows with a value, ascending, at the positions `nth` among them. Positions past the last row are
    /// ignored.
    pub(super) fn rows(&self, value: u32, nth: &Range<usize>) -> impl Iterator<Item = u32> + '_ {
        let places = self.places(value);
        let from = places.start + nth.start.min(places.len());
        let to = places.start + nth.end.min(places.len());
        (from..to).map(|place| if self.rows.is_empty() { row_number(place) } else { self.rows[place] })
    }

    fn places(&self, value: u32) -> Range<usize> {
        let value = value as usize;
        if self.starts.is_empty() {
            return value..value + 1;
        }
        self.starts[value] as usize..self.starts[value + 1] as usize
    }
}

#[cfg(test)]
mod tests {
    use nearprint_join::Kernel;

    use super::ExistingValues;

    #[test]
    fn rows_of_every_value_are_found_whatever_their_order_and_repeats() {
        for fingerprints in [vec![], vec![1, 2, 9], vec![1, 1, 2, 9, 9, 9], vec![9, 1, 2, 1, 9, 0], vec![5, 5]] {
            let grouped = ExistingValues::group(Kernel::best(), fingerprints.clone());
            assert!(grouped.values().is_sorted_by(|a, b| a < b));
            let mut seen = 0;
            for (v, value) in (0..).zip(grouped.values()) {
                let rows: Vec<u32> = grouped.rows(v, &(0..usize::MAX)).collect();
                assert!(rows.is_sorted() && rows.len() == grouped.n_rows(v));
                assert!(rows.iter().all(|&row| fingerprints[row as usize] == *value));
                assert_eq!(grouped.rows(v, &(1..2)).collect::<Vec<_>>(), rows.get(1..2).unwrap_or(&[]));
                seen += rows.len();
            }
            assert_eq!(seen, fingerprints.len());
        }
    }
}
