//! Time zones, by their names in the IANA database, which is part of the program.

use chrono_tz::{TZ_VARIANTS, Tz};
use nearprint_fault::{Fault, words};

use crate::job_keys::nearest;

/// Parses the name of a time zone.
///
/// # Errors
/// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if the time zone database has no such zone. A zone with a name
/// like it is named.
pub fn zone(key: &str, name: &str) -> Result<Tz, Fault> {
    name.parse().map_err(|_| {
        let known = TZ_VARIANTS.iter().map(|zone| zone.name());
        let meant = nearest(name, known);
        let meant =
            meant.map_or_else(|| "write one such as Asia/Shanghai".to_owned(), |zone| format!("did you mean {zone}?"));
        Fault::config(key, words![format!("no time zone '{}': {meant}", name.escape_debug())])
    })
}

#[cfg(test)]
mod tests {
    use super::zone;

    #[test]
    fn a_zone_that_is_like_one_of_the_database_is_told() {
        let refused = zone("time_zone", "Asia/Shanghia").unwrap_err().to_string();
        assert_eq!(refused, "time_zone: no time zone 'Asia/Shanghia': did you mean Asia/Shanghai?");
    }
}
