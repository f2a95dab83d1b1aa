//! The textbook probe. It has four tables, each ordered by another 16 leading bits, looks them up by random access, and
//! compares one candidate after the other (Manku, Jain, Das Sarma, WWW 2007, section 3.1, for k = 3).

/// Four sorted copies of the queries, each rotated by another multiple of 16 bits and each with a directory.
#[derive(Debug)]
pub struct FourTables {
    tables: Vec<(Vec<u64>, Vec<u32>)>,
}

impl FourTables {
    /// Builds the tables of at most 2^32 queries.
    #[allow(clippy::cast_possible_truncation, reason = "as said")]
    pub fn build(queries: &[u64]) -> Self {
        let table = |turn: u32| {
            let mut rows: Vec<u64> = queries.iter().map(|q| q.rotate_left(turn)).collect();
            rows.sort_unstable();
            let mut starts = vec![0u32; (1 << 16) + 1];
            for row in &rows {
                starts[(row >> 48) as usize + 1] += 1;
            }
            for i in 0..1 << 16 {
                starts[i + 1] += starts[i];
            }
            (rows, starts)
        };
        Self { tables: [0, 16, 32, 48].map(table).into() }
    }

    /// Counts the pairs within `max_distance` ≤ 3. A pair that several tables find counts several times.
    pub fn probe(&self, existing: &[u64], max_distance: u32) -> u64 {
        let mut n = 0;
        for &fingerprint in existing {
            for ((rows, starts), turn) in self.tables.iter().zip([0, 16, 32, 48]) {
                let turned = fingerprint.rotate_left(turn);
                let prefix = usize::from((turned >> 48) as u16);
                for row in &rows[starts[prefix] as usize..starts[prefix + 1] as usize] {
                    n += u64::from((row ^ turned).count_ones() <= max_distance);
                }
            }
        }
        n
    }
}
