//! Numbers in plots and labels.

/// Formats 65536 as `65k`, for a label.
pub(crate) fn short_count(n: u64) -> String {
    match n {
        0..10_000 => n.to_string(),
        10_000..10_000_000 => format!("{}k", n / 1000),
        _ => format!("{}M", n / 1_000_000),
    }
}

/// Formats 1500000 as `1.5M`, for an axis.
pub(crate) fn short(value: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let unit = UNITS.into_iter().find(|(size, _)| value >= *size);
    unit.map_or_else(
        || format!("{value:.0}"),
        |(size, name)| format!("{}{name}", (value / size * 100.0).round() / 100.0),
    )
}
