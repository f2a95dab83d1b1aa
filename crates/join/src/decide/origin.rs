//! The stores of existing documents.

/// The store of an existing document: a reference store, or the night's own. An id names one document within its store
/// only.
///
/// Where an order of existing documents ends with their ids, the origin follows: references by their position in their
/// list, then the own store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(u8);

impl Origin {
    /// The night's own store, or the only set of existing documents.
    pub const OWN: Self = Self(u8::MAX);

    /// The most reference stores that a night can have.
    pub const MAX_REFERENCES: usize = u8::MAX as usize;

    /// Returns the origin of the documents of a reference store, by its position in the list. `None` if the position is
    /// not below [`MAX_REFERENCES`](Self::MAX_REFERENCES).
    #[must_use]
    pub fn reference(position: usize) -> Option<Self> {
        u8::try_from(position).ok().map(Self).filter(|origin| *origin != Self::OWN)
    }

    /// Returns the position of the reference store, or `None` for the own store.
    #[must_use]
    pub fn position(self) -> Option<usize> {
        (self != Self::OWN).then_some(usize::from(self.0))
    }
}

/// An origin as a number. Numbers sort as origins do.
impl From<Origin> for u8 {
    fn from(origin: Origin) -> Self {
        origin.0
    }
}

impl From<u8> for Origin {
    fn from(number: u8) -> Self {
        Self(number)
    }
}

#[cfg(test)]
mod tests {
    use super::Origin;

    #[test]
    fn references_come_in_the_order_of_their_list_and_before_the_own_store() {
        let all: Vec<Origin> = (0..Origin::MAX_REFERENCES).filter_map(Origin::reference).collect();
        assert!(all.len() == Origin::MAX_REFERENCES && all.is_sorted_by(|a, b| a < b));
        assert!(all.iter().enumerate().all(|(i, origin)| origin.position() == Some(i) && *origin < Origin::OWN));
        assert_eq!((Origin::reference(Origin::MAX_REFERENCES), Origin::OWN.position()), (None, None));
        assert!(all.iter().all(|&origin| Origin::from(u8::from(origin)) == origin));
    }
}
