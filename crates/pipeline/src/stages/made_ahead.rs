//! Datasets whose batches all threads make, some ahead, and which are written in order.

use nearprint_fault::Result;
use nearprint_storage::in_pool;
use rayon::prelude::*;

/// The most batches that are made at a time. More would wait for the one thread that encodes them.
const MADE_AT_ONCE: usize = 4;

/// Makes something of each input, several at a time, and gives it to `write` in the order of the inputs. At most eight are in
/// memory: those that are made, and those that are written.
///
/// # Errors
/// The error of the first input for which `make` or `write` fails. `write` has taken all inputs before it, and takes none after it.
pub(crate) fn write_in_order<I: Send, T: Send>(
    mut inputs: impl Iterator<Item = I> + Send,
    make: impl Fn(I) -> Result<T> + Sync,
    mut write: impl FnMut(T) -> Result<()> + Send,
) -> Result<()> {
    in_pool(|| {
        let at_once = rayon::current_num_threads().min(MADE_AT_ONCE);
        let mut made: Vec<Result<T>> = Vec::new();
        loop {
            let next: Vec<I> = inputs.by_ref().take(at_once).collect();
            let (next, written) = rayon::join(
                || next.into_par_iter().map(&make).collect(),
                || made.drain(..).try_for_each(|made| write(made?)),
            );
            written?;
            made = next;
            if made.is_empty() {
                return Ok(());
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use nearprint_fault::{Fault, Result};

    use super::write_in_order;

    #[test]
    fn what_is_made_of_inputs_is_written_in_their_order_up_to_the_first_error() -> Result<()> {
        for n in [0u32, 1, 2, 3, 64, 1000] {
            let mut written = Vec::new();
            let write = |made| {
                written.push(made);
                Ok(())
            };
            write_in_order(0..n, |input| Ok(input * 3), write)?;
            assert_eq!(written, (0..n).map(|input| input * 3).collect::<Vec<_>>());
        }
        let bad = |input: u32| match input {
            500.. => Err(Fault::internal("test", format!("input {input}"))),
            _ => Ok(input),
        };
        let mut written = Vec::new();
        let write = |made| {
            written.push(made);
            Ok(())
        };
        let error = write_in_order(0..1000, bad, write).unwrap_err();
        assert!(error.to_string().contains("input 500"), "{error}");
        assert_eq!(written, (0..500).collect::<Vec<_>>());
        let mut n_written = 0;
        let full = |made: u32| {
            n_written += 1;
            if made == 7 { Err(Fault::internal("test", "full")) } else { Ok(()) }
        };
        assert!(write_in_order(0..1000, Ok, full).is_err());
        assert_eq!(n_written, 8);
        Ok(())
    }
}
