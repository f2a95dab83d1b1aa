//! What tells others about a run, if they ask for it. It never changes what is published, nor the exit code.

mod lineage;
mod metrics;

use serde_json::Value;

use crate::args::RunArgs;
use crate::exit_code::Failure;
use lineage::Lineage;
use metrics::Metrics;

/// Those who are told about a run.
#[derive(Debug)]
pub struct Watch {
    metrics: Option<Metrics>,
    lineage: Option<Lineage>,
}

impl Watch {
    /// Checks the files that the arguments name, and says that the run starts. Tells nobody without arguments.
    pub fn start(args: Option<&RunArgs>) -> Result<Self, Failure> {
        let Some(args) = args else {
            return Ok(Self { metrics: None, lineage: None });
        };
        let metrics =
            args.watch.metrics_file.as_deref().map(|file| Metrics::prepare(file, &args.config)).transpose()?;
        let lineage = Lineage::of(args)?;
        if let Some(lineage) = &lineage {
            lineage.started();
        }
        Ok(Self { metrics, lineage })
    }

    /// Says how the run ended. `summary` is that of `--json`.
    pub fn end(self, summary: &Value) {
        if let Some(metrics) = self.metrics {
            metrics.write(summary);
        }
        if let Some(lineage) = self.lineage {
            lineage.ended(summary);
        }
    }
}
