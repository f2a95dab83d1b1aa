//! Numbers in sentences for people.

/// Formats 1234567 as `1,234,567`.
#[must_use]
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats 1 as `1 file`, and 1234567 as `1,234,567 files`.
#[must_use]
pub fn counted(n: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// Says how many more there are, if there are any: ` and 1 more`.
#[must_use]
pub fn and_more(n: u64) -> String {
    if n == 0 { String::new() } else { format!(" and {} more", grouped(n)) }
}

/// Returns a number of bytes with two or three digits and a unit.
#[must_use]
pub fn in_bytes(bytes: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let unit = UNITS.into_iter().find(|(size, _)| bytes >= *size);
    unit.map_or_else(|| format!("{bytes:.0} bytes"), |(size, name)| format!("{:.1} {name}", bytes / size))
}

/// Formats a share as a percentage with one decimal. A share that is not 0 or 1 is not shown as one.
#[must_use]
pub fn percent(share: f64) -> String {
    match share {
        s if s > 0.0 && s < 0.0005 => "under 0.1 %".to_owned(),
        s if (0.9995..1.0).contains(&s) => "over 99.9 %".to_owned(),
        s => format!("{:.1} %", s * 100.0),
    }
}
