//! Undisturbed nights: what all other trials compare with.

use nearprint_harness::night::{Night, Place, Seen, Spec};
use nearprint_harness::row::{Row, Tally};
use nearprint_harness::server::Server;
use nearprint_harness::{Common, Result, require};

/// Undisturbed nights: the trials' own premise.
pub fn run(args: &Common) -> Result<Vec<Row>> {
    let mut places = vec![None];
    places.extend(Server::from_env()?.map(Some));
    let mut rows = Vec::new();
    for server in places {
        let backend = if server.is_some() { "rgw" } else { "local" };
        let mut tally = Tally::new("N", "an undisturbed night", backend, "0, sound, a rerun changes nothing");
        for seed in 0..args.seeds {
            tally.add(undisturbed(args, server.as_ref(), seed));
        }
        rows.push(tally.row());
    }
    Ok(rows)
}

fn undisturbed(args: &Common, server: Option<&Server>, seed: u64) -> Result<String> {
    let scratch = args.scratch()?;
    let place = server.map_or(Place::Local, |s| Place::on(s, &format!("night-{seed}")));
    let night = Night::prepare(&args.nearprint, scratch.path(), place, Spec::new(seed))?;
    let ran = night.new_run().run()?;
    ran.ends_with(&[0], &[])?;
    let seen = night.holds_after(&ran)?;
    require!(seen == Seen::New, "published, but readers see {seen:?}");
    Ok("exit 0".to_owned())
}
