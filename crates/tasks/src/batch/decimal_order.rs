//! Row numbers as ids: the numbers below some n in the order of their decimal digits, as text sorts them.

use nearprint_storage::{in_memory, row_number};

/// The numbers 0 to n − 1 in the order of their strings. They are not held, because it can be computed how many numbers
/// below n start with a prefix of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecimalOrder {
    n: u32,
}

impl DecimalOrder {
    pub(crate) fn new(n: u32) -> Self {
        Self { n }
    }

    /// Returns the number at a position of the order.
    pub(crate) fn number_at(self, position: u32) -> u32 {
        if position == 0 {
            return 0;
        }
        let (mut left, mut prefix) = (u64::from(position), 1);
        loop {
            let starting = self.n_starting_with(prefix);
            if left > starting {
                left -= starting;
                prefix += 1;
            } else if left == 1 {
                return row_number(in_memory(prefix));
            } else {
                left -= 1;
                prefix *= 10;
            }
        }
    }

    /// Returns all numbers, in order.
    pub(crate) fn numbers(self) -> impl Iterator<Item = u32> {
        let n = u64::from(self.n);
        let next = move |&number: &u64| {
            if number == 0 {
                return (n > 1).then_some(1);
            }
            if number * 10 < n {
                return Some(number * 10);
            }
            // The next number has as many digits, or fewer if the last digit is used up.
            let mut last = number;
            while last % 10 == 9 || last + 1 >= n {
                last /= 10;
            }
            (last > 0).then_some(last + 1)
        };
        std::iter::successors((n > 0).then_some(0), next).map(|number| row_number(in_memory(number)))
    }

    /// Counts the numbers below n that are `prefix`, which is not 0, or that are `prefix` and further digits.
    fn n_starting_with(self, prefix: u64) -> u64 {
        let n = u64::from(self.n);
        let (mut from, mut to, mut count) = (prefix, prefix + 1, 0);
        while from < n {
            count += n.min(to) - from;
            (from, to) = (from * 10, to * 10);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::DecimalOrder;

    #[test]
    fn numbers_come_in_the_order_of_their_text() {
        for n in (0..130).chain([999, 1000, 1001, 12_345]) {
            let mut expected: Vec<u32> = (0..n).collect();
            expected.sort_by_key(u32::to_string);
            let order = DecimalOrder::new(n);
            assert_eq!(order.numbers().collect::<Vec<_>>(), expected, "{n}");
            assert_eq!((0..n).map(|at| order.number_at(at)).collect::<Vec<_>>(), expected, "{n}");
        }
    }
}
