//! The query batch by a word of its sketches: the classes behind each distinct word.

use rayon::prelude::*;

use crate::rows::query_rows::QueryRows;

/// The classes of each distinct word, ascending within a word. The place of a word among all of them is its number here.
#[derive(Debug)]
pub struct WordRows {
    /// The places in `classes` at which the words start, and the end.
    starts: Vec<u32>,
    classes: Vec<u32>,
}

impl WordRows {
    /// Groups the classes that have a sketch by a word of it, and returns them with the distinct words in ascending order.
    ///
    /// # Panics
    /// If sketches have no such word.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "a batch has fewer than u32::MAX classes")]
    pub fn group(rows: &QueryRows, word: u8) -> (Self, Vec<u64>) {
        let of_class = |class: u32| Some((rows.sketch(class)?.word(word), class));
        let mut order: Vec<(u64, u32)> = (0..rows.n_classes() as u32).into_par_iter().filter_map(of_class).collect();
        order.par_sort_unstable();
        let (mut starts, mut values) = (Vec::new(), Vec::<u64>::new());
        for (place, &(value, _)) in order.iter().enumerate() {
            if values.last() != Some(&value) {
                values.push(value);
                starts.push(place as u32);
            }
        }
        starts.push(order.len() as u32);
        let grouped = Self { starts, classes: order.into_iter().map(|(_, class)| class).collect() };
        debug_assert!(values.is_sorted_by(|a, b| a < b), "words ascend, each once: their places number them");
        (grouped, values)
    }

    /// Returns the classes of a word.
    ///
    /// # Panics
    /// If there is no such word.
    #[must_use]
    pub fn classes_of(&self, value: u32) -> &[u32] {
        let value = value as usize;
        &self.classes[self.starts[value] as usize..self.starts[value + 1] as usize]
    }

    /// Returns the bytes held.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        (self.starts.capacity() + self.classes.capacity()) * 4
    }
}
