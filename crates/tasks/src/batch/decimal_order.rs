//! Row numbers as ids: the numbers below some n in the order of their decimal digits, as text sorts them.

use nearprint_storage::{in_memory, row_number};

/// The numbers 0 to n − 1 ordered as strings, without holding them: of a prefix of digits it is known how many numbers below n
/// start with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecimalOrder {
    n: u32,
}

impl DecimalOrder {
    pub(crate) fn new(n: u32) -> Self {
        Self { n }
    }

    /// The number at a position of the order.
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

    /// All numbers, in order.
    pub(crate) fn numbers(self) -> impl Iterator<Item = u32> {
        let n = u64::from(self.n);
        let next = move |&number: &u64| {
            if number == 0 {
                return (n > 1).then_some(1);
            }
            if number * 10 < n {
                return Some(number * 10);
            }
            // The next number of as many digits, or of fewer where the last one is used up.
            let mut last = number;
            while last % 10 == 9 || last + 1 >= n {
                last /= 10;
            }
            (last > 0).then_some(last + 1)
        };
        std::iter::successors((n > 0).then_some(0), next).map(|number| row_number(in_memory(number)))
    }

    /// How many numbers below n are `prefix`, not 0, or `prefix` and further digits.
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
