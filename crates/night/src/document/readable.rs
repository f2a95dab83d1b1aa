//! Results of nights that may be missing, while the store is there.

use nearprint_fault::{ErrorKind, Result};

/// Returns the reason in place of the error of results that are missing or damaged. The store is known without them.
pub fn readable<T>(read: Result<T>) -> Result<std::result::Result<T, String>> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(error) if matches!(error.kind(), ErrorKind::InputMissing | ErrorKind::BadData) => {
            Ok(Err(error.to_string()))
        }
        Err(error) => Err(error),
    }
}
