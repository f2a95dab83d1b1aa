//! A column of values that some rows lack.

use crate::rows::row_set::RowSet;

/// A column that has a value, or a gap, for each row. It stores the values one after the other, and a set of the rows
/// that have none. A column without values takes no memory, and a column without gaps takes only the memory of its
/// values.
#[derive(Debug, Clone)]
pub struct Column<T> {
    n_rows: u32,
    /// The value of every row, with an arbitrary value in the gaps; empty if there are only gaps.
    values: Vec<T>,
    gaps: RowSet,
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self { n_rows: 0, values: Vec::new(), gaps: RowSet::default() }
    }
}

impl<T: Copy> Column<T> {
    /// Returns a column without rows that has room for some.
    #[must_use]
    pub fn with_capacity(n_rows: usize) -> Self {
        Self { values: Vec::with_capacity(n_rows), ..Self::default() }
    }

    /// Appends a row. The caller appends at most `u32::MAX` − 1 rows.
    ///
    /// # Panics
    /// Debug builds panic if there are `u32::MAX` rows already.
    pub fn push(&mut self, value: Option<T>) {
        match value {
            Some(value) if self.values.is_empty() && self.n_rows > 0 => {
                self.gaps = RowSet::all_below(self.n_rows);
                self.values = vec![value; self.n_rows as usize + 1];
            }
            Some(value) => self.values.push(value),
            None => {
                if let Some(&filler) = self.values.first() {
                    self.values.push(filler);
                    self.gaps.insert(self.n_rows);
                }
            }
        }
        debug_assert!(self.n_rows < u32::MAX, "whoever collects rows refuses more of them");
        self.n_rows += 1;
        debug_assert!(
            self.values.is_empty() || self.values.len() == self.n_rows as usize,
            "a column holds a value for each row, or none at all"
        );
    }

    /// Returns the value of a row, or `None` if the row has none.
    #[must_use]
    pub fn get(&self, row: u32) -> Option<&T> {
        let value = self.values.get(row as usize)?;
        (!self.gaps.contains(row)).then_some(value)
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn n_rows(&self) -> u32 {
        self.n_rows
    }

    /// Returns the number of rows that have a value.
    #[must_use]
    pub fn n_values(&self) -> u64 {
        self.values.len() as u64 - self.gaps.n_below(self.values.len() as u64)
    }

    /// Iterates over the value of each row.
    pub fn iter(&self) -> impl Iterator<Item = Option<&T>> {
        (0..self.n_rows).map(|row| self.get(row))
    }

    /// Returns a column of the rows of `order`, in its order.
    ///
    /// # Panics
    /// If `order` has more than `u32::MAX` rows, or if the column has values and `order` names a row beyond its end.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a column that is cut short would lose documents")]
    pub fn take(self, order: &[u32]) -> Self {
        debug_assert!(order.iter().all(|&row| row < self.n_rows), "an order names rows of its column");
        let mut gaps = RowSet::default();
        let of_order = |(row, &from): (u32, &u32)| {
            if self.gaps.contains(from) {
                gaps.insert(row);
            }
            self.values[from as usize]
        };
        let none = self.values.is_empty();
        let values = if none { Vec::new() } else { (0..).zip(order).map(of_order).collect() };
        Self { n_rows: u32::try_from(order.len()).expect("rows have 32-bit numbers"), values, gaps }
    }

    /// Returns the bytes that the column holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.values.len() * size_of::<T>() + self.gaps.memory_bytes()
    }
}

impl<T: Copy> FromIterator<Option<T>> for Column<T> {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(values: I) -> Self {
        let mut column = Self::default();
        values.into_iter().for_each(|value| column.push(value));
        column
    }
}

#[cfg(test)]
mod tests {
    use super::Column;

    #[test]
    fn values_and_gaps_stay_where_they_are_and_move_with_the_order() {
        for rows in [vec![], vec![None, None, Some(7)], vec![Some(1), None, Some(3), None], vec![None; 70]] {
            let column: Column<u16> = rows.iter().copied().collect();
            assert_eq!(column.iter().map(Option::<&u16>::copied).collect::<Vec<_>>(), rows);
            assert_eq!(column.n_values(), rows.iter().flatten().count() as u64);
            let order: Vec<u32> = (0..column.n_rows()).rev().collect();
            let turned: Vec<Option<u16>> = rows.iter().rev().copied().collect();
            assert_eq!(column.take(&order).iter().map(Option::<&u16>::copied).collect::<Vec<_>>(), turned);
        }
    }
}
