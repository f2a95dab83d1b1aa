//! The extension module of the Python package `nearprint`: the functions of the crates below over Arrow, and the
//! command. The package in `python/nearprint` adds what Python itself says best, and has the stubs.
//!
//! Each call computes on threads of its own, without the GIL. Columns come and go through Arrow's PyCapsule interface,
//! without copies of the texts.

mod call;
mod engine;
mod error;
mod frames;
mod input;
mod join;
mod logging;
mod night;
mod output;
mod store;
mod tasks;
mod text;

use pyo3::prelude::*;

/// The compiled part of nearprint: import `nearprint` instead.
#[pymodule]
mod _nearprint {
    #[pymodule_export]
    use super::engine::{Progress, engine_threads};
    #[pymodule_export]
    use super::error::kind_of;
    #[pymodule_export]
    use super::frames::{
        TempFolder, integers_of, read_columns, rows_above, rows_of, table_of, unpadded, write_columns,
    };
    #[pymodule_export]
    use super::join::{hamming, join, pairs_within};
    #[pymodule_export]
    use super::night::{bytes_of, main, profile, refuse, run};
    #[pymodule_export]
    use super::output::{Array, Table};
    #[pymodule_export]
    use super::store::Store;
    #[pymodule_export]
    use super::tasks::{
        FingerprintContext, MapContext, TaskBatches, TaskMessages, fingerprint_messages, fingerprint_task,
        map_messages, map_task,
    };
    #[pymodule_export]
    use super::text::{fingerprint, sketch};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
