//! Nights by a word in place of a date, and the list of all nights.

use std::fs;

use chrono::{Days, Utc};
use chrono_tz::Tz;
use serde_json::json;

use crate::support::{Night, expect, nearprint_in, text};

const DAYS: [&str; 2] = ["2026-11-19", "2026-11-20"];

fn published() -> Night {
    let night = Night::new("");
    let one = text(1, 150);
    night.documents(DAYS[0], &[("a", &one), ("b", &one), ("c", &text(2, 150))]).run(DAYS[0], &[]).expect_success();
    night.documents(DAYS[1], &[("a", &one), ("d", &text(3, 150)), ("e", "")]).run(DAYS[1], &[]).expect_success();
    night
}

#[test]
fn today_and_yesterday_are_days_of_the_jobs_time_zone() {
    // It is never the same day in these two.
    for name in ["Pacific/Kiritimati", "Pacific/Pago_Pago", "UTC"] {
        let zone = if name == "UTC" { String::new() } else { format!("time_zone = \"{name}\"\n") };
        let night = Night::new(&zone);
        let of_zone = |days| {
            let now = Utc::now().with_timezone(&name.parse::<Tz>().unwrap());
            now.date_naive().checked_sub_days(Days::new(days)).unwrap().to_string()
        };
        for (word, days) in [("today", 0), ("yesterday", 1)] {
            let before = of_zone(days);
            let late = night.command(word, &["--late-exit-code", "75"]).run().unwrap();
            expect(&late, 75, &["no documents at"]);
            let dt = late.json()["dt"].as_str().unwrap().to_owned();
            assert!([before, of_zone(days)].contains(&dt), "{name}: {word} is {dt}");
            assert!(late.error().contains(&dt) && late.stderr.contains(&format!("{word} is {dt}")), "{}", late.stderr);
        }
    }
    let night = Night::new("time_zone = \"Asia/Shangai\"\n");
    let unknown = night.command("today", &[]).run().unwrap();
    expect(&unknown, 78, &["job.toml:", "no time zone 'Asia/Shangai': did you mean Asia/Shanghai?"]);
    expect(&night.command(DAYS[0], &[]).run().unwrap(), 66, &["no documents at"]);
}

#[test]
fn latest_is_the_newest_night_of_the_store_for_every_command_that_reads_nights() {
    let night = published();
    let said = |line: &str, dt: &str| {
        let words: Vec<&str> = line.split(' ').chain(["--config", "job.toml", "--dt", dt, "--json"]).collect();
        let mut json = nearprint_in(night.path(), &words).expect_success().json();
        for spent in ["elapsed_ms", "peak_rss_bytes", "stage_ms"] {
            json.as_object_mut().unwrap().remove(spent);
        }
        json
    };
    night.run(DAYS[1], &["--replace"]).expect_success();
    for line in ["report", "audit", "check", "filter --replace --output survivors", "diff results results"] {
        let [latest, dated] = ["latest", DAYS[1]].map(|dt| said(line, dt));
        assert_eq!(latest, dated, "{line}");
        assert!(latest.to_string().contains(DAYS[1]), "{line}: {latest}");
    }
    let both = ["filter", "--config", "job.toml", "--dt", DAYS[0], "--to", "latest", "--output", "both", "--json"];
    assert_eq!(nearprint_in(night.path(), &both).expect_success().json()["nights"].as_array().unwrap().len(), 2);
    expect(&night.command("latest", &[]).run().unwrap(), 64, &["a run makes one: give its date, today or yesterday"]);
    for results in [&["results"][..], &["results", "results"]] {
        let diff = [&["diff"], results, &["--dt", "latest"]].concat();
        expect(&nearprint_in(night.path(), &diff), 64, &["give --config FILE, or the date"]);
    }
    let drop = ["store", "drop-night", "store", "--dt", "latest"];
    expect(&nearprint_in(night.path(), &drop), 64, &["'latest' is not a date"]);
    let none = ["report", "--config", "job.toml", "--dt", "latest"];
    expect(&nearprint_in(Night::new("").path(), &none), 66, &["no store"]);
}

#[test]
fn store_info_has_a_line_for_each_night_with_what_was_decided_there() {
    let night = published();
    let info = |more: &[&str]| nearprint_in(night.path(), &[&["store", "info", "store"], more].concat());
    let lines = |text: String| -> Vec<Vec<String>> {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        text.lines().skip(2).map(words).collect()
    };
    let json = info(&["--json"]).expect_success().json();
    let counts =
        |i: usize| ["n_documents", "n_keep", "n_drop", "n_skip", "n_same_id"].map(|key| json["nights"][i][key].clone());
    assert_eq!(counts(0), [3, 2, 1, 0, 0].map(|n| json!(n)));
    assert_eq!(counts(1), [3, 2, 0, 1, 1].map(|n| json!(n)));
    let shown = lines(info(&[]).expect_success().stdout);
    assert_eq!(shown[0][..6], [DAYS[0], "3", "2", "1", "0", "0"]);
    assert_eq!(shown[1][..6], [DAYS[1], "3", "2", "0", "1", "1"]);
    assert!(shown[1].len() == 7, "a usual night has no notes: {shown:?}");

    fs::write(night.path().join("ids"), "b\n").unwrap();
    nearprint_in(night.path(), &["store", "forget", "store", "--ids", "ids"]).expect_success();
    night.documents("2026-11-18", &[("late", &text(8, 90))]).run("2026-11-18", &["--late"]).expect_success();
    fs::remove_file(night.generation(DAYS[1]).join("manifest.json")).unwrap();
    let shown = info(&[]).expect_success().stdout;
    let line = |dt: &str| shown.lines().find(|line| line.trim_start().starts_with(dt)).unwrap();
    assert!(line(DAYS[0]).ends_with("stale: earlier nights changed since; 1 document forgotten since"), "{shown}");
    assert!(line(DAYS[1]).contains("its manifest cannot be read: ") && line(DAYS[1]).contains("  -  "), "{shown}");
    let json = info(&["--json"]).expect_success().json();
    assert_eq!(json["nights"][1]["n_forgotten"], 1);
    assert!(json["nights"][2]["unread"].is_string() && json["nights"][2]["n_documents"].is_null(), "{json}");
}
