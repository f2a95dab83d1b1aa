//! Bar charts as SVG. The colours are names for the page's style, which has others for a dark background.

use std::error::Error;

use nearprint_fault::{Fault, Result};
use plotters::coord::ranged1d::{IntoSegmentedCoord, SegmentValue};
use plotters::prelude::*;

use crate::numbers::short;

/// The colour of kept documents.
pub const KEPT: RGBColor = RGBColor(0x00, 0x72, 0xB2);
/// The colour of dropped documents.
pub const DROPPED: RGBColor = RGBColor(0xC2, 0x4E, 0x00);
/// The colour of skipped documents.
pub const SKIPPED: RGBColor = RGBColor(0x7A, 0x80, 0x87);
const LINE: RGBColor = RGBColor(0xD5, 0xD9, 0xDE);

const FONT: (&str, u32) = ("sans-serif", 13);

/// Bars side by side, each a stack of parts from the bottom to the top.
#[derive(Debug)]
pub struct Bars {
    /// The width and height in pixels, to which the page's text size belongs.
    pub size: (u32, u32),
    /// The labels of the bars.
    pub labels: Vec<String>,
    /// The colour of each part, and its value in each bar.
    pub parts: Vec<(RGBColor, Vec<u64>)>,
    /// How a value is written beside the chart.
    pub unit: Unit,
}

/// The unit of the values of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Whole things.
    Count,
    /// Hundredths of a percent, which are written as percent.
    BasisPoints,
}

impl Unit {
    fn label(self, value: f64) -> String {
        match self {
            Self::Count if value.fract() == 0.0 => short(value),
            Self::Count => String::new(),
            Self::BasisPoints => format!("{:.1} %", value / 100.0),
        }
    }
}

/// The most labels of bars that are written.
const MAX_LABELS: usize = 10;

impl Bars {
    /// Draws the chart. There must be a bar.
    ///
    /// # Errors
    /// [`ErrorKind::Bug`](nearprint_fault::ErrorKind::Bug) if it cannot be drawn.
    pub fn svg(&self) -> Result<String> {
        let mut out = String::new();
        let failed = |e: Box<dyn Error>| Fault::internal("chart", e);
        self.draw(&mut out).map_err(failed)?;
        Ok(out)
    }

    #[allow(clippy::cast_precision_loss, reason = "heights of bars")]
    fn draw(&self, out: &mut String) -> std::result::Result<(), Box<dyn Error>> {
        let n = self.labels.len();
        let sums = (0..n).map(|i| self.parts.iter().map(|(_, values)| values[i]).sum::<u64>());
        // A chart without bars is as high as one document.
        let highest = sums.max().unwrap_or_default().max(1) as f64;
        let root = SVGBackend::with_string(out, self.size).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin(6)
            // Half a label, below a narrow last bar.
            .margin_right(18)
            .x_label_area_size(24)
            .y_label_area_size(46)
            .build_cartesian_2d((0..n.saturating_sub(1)).into_segmented(), 0.0..highest * 1.05)?;
        let every = n.div_ceil(MAX_LABELS);
        let label = |at: &SegmentValue<usize>| match at {
            SegmentValue::CenterOf(i) if (n - 1).saturating_sub(*i) % every == 0 => {
                // The axis has as many places as there are labels.
                self.labels.get(*i).cloned().unwrap_or_default()
            }
            _ => String::new(),
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(n)
            .x_label_formatter(&label)
            .y_labels(4)
            .y_label_formatter(&|y| self.unit.label(*y))
            .axis_style(LINE)
            .bold_line_style(LINE)
            .light_line_style(TRANSPARENT)
            .label_style(FONT)
            .draw()?;
        let mut below = vec![0.0; n];
        for (color, values) in &self.parts {
            for (i, value) in values.iter().enumerate() {
                let above = below[i] + *value as f64;
                let right = if i + 1 == n { SegmentValue::Last } else { SegmentValue::Exact(i + 1) };
                let left = SegmentValue::Exact(i);
                let mut bar = Rectangle::new([(left, below[i]), (right, above)], color.filled());
                bar.set_margin(0, 0, 2, 2);
                if *value > 0 {
                    chart.draw_series([bar])?;
                }
                below[i] = above;
            }
        }
        root.present()?;
        Ok(())
    }
}
