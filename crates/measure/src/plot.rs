//! Draws the plot of `evaluate --plot`: precision, recall and F1 with their intervals, as SVG.

use std::error::Error;

use crate::evaluate::Evaluation;
use crate::evaluate::score::Score;
use plotters::coord::Shift;
use plotters::prelude::*;

type Drawn = Result<(), Box<dyn Error>>;
type Panel<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The name, colour, value and interval of a score. The colours are from the palette of Okabe and Ito, which
/// colour-blind people can tell apart.
type Curve = (&'static str, RGBColor, fn(&Score) -> Option<f64>, fn(&Score) -> Option<[f64; 2]>);

const CURVES: [Curve; 3] = [
    ("precision", RGBColor(0, 114, 178), |s| Some(s.precision), |s| s.ci.precision),
    ("recall", RGBColor(213, 94, 0), |s| s.recall, |s| s.ci.recall),
    ("F1", RGBColor(0, 0, 0), |s| s.f1, |s| s.ci.f1),
];

const PANEL: (u32, u32) = (560, 420);
const FONT: &str = "sans-serif";

/// The data of one panel. The points are pairs of a distance and its score, in ascending order.
struct Series<'a> {
    caption: String,
    x_label: &'a str,
    points: Vec<(f64, Score)>,
    own: Option<f64>,
}

/// Draws the scores by Hamming distance and, if the profile has sketches, by sketch distance.
///
/// [`evaluate`](crate::evaluate()) has an example.
pub fn svg(evaluation: &Evaluation) -> Result<String, Box<dyn Error>> {
    let mut panels = vec![by_distance(evaluation)];
    if !evaluation.by_max_sketch_distance.is_empty() {
        panels.push(by_sketch_distance(evaluation));
    }
    let mut out = String::new();
    let n_panels = u32::try_from(panels.len())?;
    {
        let root = SVGBackend::with_string(&mut out, (PANEL.0 * n_panels, PANEL.1)).into_drawing_area();
        root.fill(&WHITE)?;
        for (area, series) in root.split_evenly((1, panels.len())).iter().zip(&panels) {
            draw(area, series)?;
        }
        root.present()?;
    }
    Ok(out)
}

fn by_distance(evaluation: &Evaluation) -> Series<'static> {
    let sketches = evaluation.max_sketch_distance.map_or(String::new(), |d| format!(", sketches within {d}"));
    Series {
        caption: format!("By Hamming distance{sketches}"),
        x_label: "max_distance",
        points: evaluation.by_max_distance.iter().map(|row| (f64::from(row.max_distance), row.score)).collect(),
        own: Some(f64::from(evaluation.own.max_distance)),
    }
}

fn by_sketch_distance(evaluation: &Evaluation) -> Series<'static> {
    let points = evaluation.by_max_sketch_distance.iter();
    Series {
        caption: format!("By sketch distance, fingerprints within {}", evaluation.own.max_distance),
        x_label: "max_sketch_distance",
        points: points.filter_map(|row| Some((f64::from(row.max_sketch_distance?), row.score))).collect(),
        own: evaluation.max_sketch_distance.map(f64::from),
    }
}

fn draw(area: &Panel<'_>, series: &Series<'_>) -> Drawn {
    let last = series.points.last().map_or(1.0, |(x, _)| x.max(1.0));
    let mut chart = ChartBuilder::on(area)
        .caption(&series.caption, (FONT, 16))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..last, 0.0..1.02)?;
    let whole = |x: &f64| format!("{x:.0}");
    let n_labels = if last <= 16.0 { series.points.len() } else { 9 };
    chart
        .configure_mesh()
        .x_desc(series.x_label)
        .x_labels(n_labels)
        .x_label_formatter(&whole)
        .y_labels(6)
        .y_label_formatter(&|y| format!("{y:.1}"))
        .light_line_style(WHITE)
        .label_style((FONT, 13))
        .draw()?;
    for (_, color, _, interval) in CURVES {
        chart.draw_series(bands(&series.points, interval).into_iter().map(|b| Polygon::new(b, color.mix(0.15))))?;
    }
    if let Some(own) = series.own {
        let line = DashedLineSeries::new([(own, 0.0), (own, 1.02)], 5, 4, BLACK.mix(0.6).into());
        chart.draw_series(line)?.label("the profile's").legend(|(x, y)| key(x, y, BLACK.mix(0.4)));
    }
    for (name, color, value, _) in CURVES {
        let points: Vec<(f64, f64)> = series.points.iter().filter_map(|(x, score)| Some((*x, value(score)?))).collect();
        let line = LineSeries::new(points, color.stroke_width(2)).point_size(2);
        chart.draw_series(line)?.label(name).legend(move |(x, y)| key(x, y, color.mix(1.0)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font((FONT, 13))
        .draw()?;
    Ok(())
}

fn key(x: i32, y: i32, color: RGBAColor) -> PathElement<(i32, i32)> {
    PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2))
}

/// Returns one outline for each sequence of neighbouring points that have an interval.
fn bands(points: &[(f64, Score)], interval: fn(&Score) -> Option<[f64; 2]>) -> Vec<Vec<(f64, f64)>> {
    let runs = points.split(|(_, score)| interval(score).is_none()).filter(|run| run.len() > 1);
    let outline = |run: &[(f64, Score)]| {
        let ends = run.iter().filter_map(|(x, score)| Some((*x, interval(score)?)));
        let low: Vec<(f64, f64)> = ends.clone().map(|(x, [low, _])| (x, low)).collect();
        ends.map(|(x, [_, high])| (x, high)).chain(low.into_iter().rev()).collect()
    };
    runs.map(outline).collect()
}
