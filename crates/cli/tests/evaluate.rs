//! `evaluate` on a tiny labelled set whose scores are known.

use std::path::Path;

use serde_json::Value;

use crate::support::{Ran, nearprint_in, text, write_documents};

/// Two texts of 40 words, a copy of each, another pair of copies that the truth does not list, a copy that it calls gray, and a
/// positive pair that nothing finds.
fn labelled_set() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let [a, b, c, d] = [1, 2, 3, 4].map(|seed| text(seed, 40));
    let (long, other) = (text(5, 400), text(6, 40));
    let rows = [
        ("a1", &a),
        ("a2", &a),
        ("b1", &b),
        ("b2", &b),
        ("c1", &c),
        ("c2", &c),
        ("d1", &d),
        ("d2", &d),
        ("e1", &long),
        ("e2", &long),
        ("f1", &other),
    ];
    let rows: Vec<(Option<&str>, Option<&str>)> =
        rows.iter().map(|(id, text)| (Some(*id), Some(text.as_str()))).collect();
    write_documents(&dir.path().join("docs.parquet"), &rows);
    let truth = "id_a\tid_b\tlabel\na1\ta2\tpos\nb2\tb1\tpos\nd1\td2\tgray\ne1\te2\tpos\na1\tf1\tpos\n";
    std::fs::write(dir.path().join("pairs.tsv"), truth).unwrap();
    dir
}

fn evaluate(dir: &Path, more: &[&str]) -> Ran {
    let args = ["evaluate", "--documents", "docs.parquet", "--truth", "pairs.tsv"];
    nearprint_in(dir, &args.into_iter().chain(more.iter().copied()).collect::<Vec<_>>())
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

/// Found are a, b, c, e; c is no pair, a-f is not found, d counts neither way.
#[test]
fn a_tiny_set_has_the_scores_that_a_person_counts() {
    let dir = labelled_set();
    let done = evaluate(dir.path(), &["--json"]).expect_success().json();
    assert_eq!([&done["n_found"], &done["n_true"], &done["n_gray"], &done["n_positive"]], [4, 3, 1, 4]);
    assert!((number(&done, "precision") - 0.75).abs() < 1e-12);
    assert!((number(&done, "recall") - 0.75).abs() < 1e-12);
    assert!((number(&done, "f1") - 0.75).abs() < 1e-12);
    assert_eq!(done["by_max_distance"].as_array().unwrap().len(), 13);
    // Components: a with f, b, c, e; the gray d has nothing that is found or positive.
    assert_eq!(done["ci"]["n_components"], 4);
}

#[test]
fn a_pair_that_is_listed_twice_counts_once_in_its_grade_and_has_one_grade() {
    let dir = labelled_set();
    let truth = "id_a\tid_b\tlabel\tgrade\na1\ta2\tpos\tA\na2\ta1\tpos\tA\nb1\tb2\tpos\tB\n";
    std::fs::write(dir.path().join("pairs.tsv"), truth).unwrap();
    let done = evaluate(dir.path(), &["--by-grade", "--json"]).expect_success().json();
    assert_eq!(done["by_grade"][0]["n_pairs"], 1, "{done}");
    std::fs::write(dir.path().join("pairs.tsv"), format!("{truth}a1\ta2\tpos\tB\n")).unwrap();
    let refused = evaluate(dir.path(), &["--by-grade"]);
    assert_eq!(refused.code, 65);
    assert!(
        refused.stderr.contains("pairs.tsv: row 5") && refused.stderr.contains("another grade"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_grade_cannot_control_the_terminal() {
    let dir = labelled_set();
    let truth = "id_a\tid_b\tlabel\tgrade\na1\ta2\tpos\t\u{1b}[31mA\n";
    std::fs::write(dir.path().join("pairs.tsv"), truth).unwrap();
    std::fs::write(dir.path().join("ignored"), "b1\n").unwrap();
    let said = evaluate(dir.path(), &["--by-grade", "--ignore", "ignored"]).expect_success().stdout;
    assert!(said.contains("\u{fffd}[31mA") && !said.contains('\u{1b}'), "{said}");
    assert!(said.contains("; 1 id left out"), "{said}");
}

#[test]
fn rows_beyond_the_distance_of_the_profile_say_that_the_judge_has_not_read_for_them() {
    let dir = labelled_set();
    let said = |most: &str| evaluate(dir.path(), &["--max-distance", most]).expect_success().stdout;
    assert!(said("13").contains("the judge reads pairs up to the profile's distance 12"), "{}", said("13"));
    assert!(!said("12").contains("the judge reads pairs up to"), "{}", said("12"));
}

#[test]
fn intervals_contain_what_they_are_of_and_are_the_same_every_time() {
    let dir = labelled_set();
    let done = evaluate(dir.path(), &["--json", "--max-distance", "9"]).expect_success().json();
    let tables =
        ["by_max_distance", "by_max_sketch_distance", "by_length"].map(|t| done[t].as_array().unwrap().clone());
    for row in tables.iter().flatten().chain([&done]) {
        for key in ["precision", "recall", "f1"] {
            let Some(ci) = row["ci"][key].as_array() else { continue };
            let (low, high) = (ci[0].as_f64().unwrap(), ci[1].as_f64().unwrap());
            assert!(0.0 <= low && low <= number(row, key) && number(row, key) <= high && high <= 1.0, "{key} of {row}");
        }
    }
    let ci = &done["ci"]["precision"];
    assert!(ci[0].as_f64().unwrap() < 0.75 && ci[1].as_f64().unwrap() > 0.75, "{ci}");
    let again = evaluate(dir.path(), &["--json", "--max-distance", "9", "--threads", "1"]).json();
    assert_eq!([&done["ci"], &done["by_length"]], [&again["ci"], &again["by_length"]]);
}

/// Four positive pairs of separate documents, all found, leave 0.025^(1/4) as the least recall.
#[test]
fn a_score_without_errors_is_not_taken_for_certain() {
    let dir = labelled_set();
    std::fs::write(
        dir.path().join("pairs.tsv"),
        "id_a\tid_b\tlabel\na1\ta2\tpos\nb1\tb2\tpos\nc1\tc2\tpos\ne1\te2\tpos\n",
    )
    .unwrap();
    let done = evaluate(dir.path(), &["--json"]).expect_success().json();
    assert_eq!(done["recall"], 1.0);
    let low = done["ci"]["recall"][0].as_f64().unwrap();
    assert!((low - 0.025_f64.powf(0.25)).abs() < 1e-12, "{low}");
}

/// Three texts that are the same, of which the truth calls two a pair: one observation.
#[test]
fn pairs_that_all_hang_together_have_no_interval() {
    let dir = labelled_set();
    let same = text(1, 40);
    let rows = ["a1", "a2", "a3"].map(|id| (Some(id), Some(same.as_str())));
    write_documents(&dir.path().join("docs.parquet"), &rows);
    std::fs::write(dir.path().join("pairs.tsv"), "id_a\tid_b\tlabel\na1\ta2\tpos\n").unwrap();
    let done = evaluate(dir.path(), &["--json"]).expect_success().json();
    assert_eq!([&done["n_found"], &done["n_true"], &done["ci"]["n_components"]], [3, 1, 1]);
    assert_eq!(done["ci"]["precision"], Value::Null);
}

#[test]
fn lengths_and_sketch_distances_add_up_to_the_whole() {
    let dir = labelled_set();
    let done = evaluate(dir.path(), &["--json"]).expect_success().json();
    let lengths = done["by_length"].as_array().unwrap();
    for key in ["n_found", "n_true", "n_gray", "n_positive"] {
        let sum: u64 = lengths.iter().map(|bucket| bucket[key].as_u64().unwrap()).sum();
        assert_eq!(done[key], sum, "{key}");
        let at_0: u64 = lengths.iter().map(|bucket| bucket["by_max_distance"][0][key].as_u64().unwrap()).sum();
        assert_eq!(done["by_max_distance"][0][key], at_0, "{key}");
    }
    // 40 words of six characters, 400 of them.
    let of = |min: u64| lengths.iter().find(|bucket| bucket["min_length"] == min).unwrap();
    assert_eq!([&of(100)["n_true"], &of(1000)["n_true"], &of(3000)["n_true"]], [2, 1, 0]);
    let sketches = done["by_max_sketch_distance"].as_array().unwrap();
    let own = sketches.iter().find(|row| row["max_sketch_distance"] == done["max_sketch_distance"]).unwrap();
    assert_eq!([&own["n_found"], &own["f1"]], [&done["n_found"], &done["f1"]]);
    let without = evaluate(dir.path(), &["--json", "--profile", "paper"]).expect_success().json();
    assert_eq!(without["by_max_sketch_distance"], serde_json::json!([]));
}

#[test]
fn the_table_and_the_plot_show_the_profiles_own_row() {
    let dir = labelled_set();
    let done = evaluate(dir.path(), &["--plot", "scores.svg"]).expect_success();
    let own: Vec<&str> = done.stdout.lines().filter(|line| line.ends_with("<- the profile's")).collect();
    assert_eq!(own.len(), 2, "{}", done.stdout);
    assert!(own[0].trim_start().starts_with("12  0.750 ["), "{}", own[0]);
    let svg = std::fs::read_to_string(dir.path().join("scores.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    for part in ["max_distance", "max_sketch_distance", "precision", "recall", "F1", "<polyline", "<polygon"] {
        assert!(svg.contains(part), "{part}");
    }
}

#[test]
fn recall_and_f1_have_no_value_where_nothing_is_positive() {
    let dir = labelled_set();
    std::fs::write(dir.path().join("pairs.tsv"), "id_a\tid_b\tlabel\na1\ta2\tneg\n").unwrap();
    let done = evaluate(dir.path(), &["--json", "--plot", "scores.svg"]).expect_success().json();
    assert_eq!([&done["recall"], &done["f1"], &done["ci"]["f1"]], [&Value::Null; 3]);
    assert_eq!(done["precision"], 0.0);
    let said = evaluate(dir.path(), &[]).expect_success().stdout;
    assert!(said.contains("Warning: no pair of the truth is positive: recall and F1 have no value"), "{said}");
    assert!(said.lines().any(|line| line.split_whitespace().filter(|cell| *cell == "-").count() == 2), "{said}");
}

#[test]
fn documents_that_do_not_count_are_said() {
    let dir = labelled_set();
    let same = text(1, 40);
    let rows = [("a1", Some(same.as_str())), ("a2", Some(same.as_str())), ("short", Some("two words")), ("null", None)];
    write_documents(&dir.path().join("docs.parquet"), &rows.map(|(id, text)| (Some(id), text)));
    std::fs::write(dir.path().join("pairs.tsv"), "\u{feff}ID_A\tid_b\tlabel\na1\ta2\t Pos \n").unwrap();
    std::fs::write(dir.path().join("ignore.txt"), "\u{feff}short\nnobody\n").unwrap();
    let done = evaluate(dir.path(), &["--ignore", "ignore.txt"]).expect_success().stdout;
    assert!(done.contains("4 documents: 2 fingerprinted, 1 too short, 0 empty, 1 NULL; 2 ids left out"), "{done}");
    assert!(done.contains("Warning: ids of --ignore that no document has: 1"), "{done}");
    let json = evaluate(dir.path(), &["--ignore", "ignore.txt", "--json"]).expect_success().json();
    assert_eq!([&json["n_true"], &json["n_ignored"], &json["n_ignored_unknown"]], [1, 2, 1]);
    std::fs::write(dir.path().join("pairs.tsv"), b"id_a\tid_b\tlabel\na\xff\ta2\tpos\n").unwrap();
    let done = evaluate(dir.path(), &[]);
    assert_eq!(done.code, 65, "{}", done.stderr);
    assert!(done.error().ends_with("pairs.tsv: line 2 is not UTF-8: save it as UTF-8"), "{}", done.stderr);
}

/// Of the 55 pairs, five are copies; the labels play no part. One more text shares 37 of 39 shingles with the copies of a, and a text
/// below the floor pairs with its copy alone.
#[test]
fn all_pairs_are_counted_by_the_exact_resemblance_of_their_texts() {
    let dir = labelled_set();
    let counts = |args: &[&str]| {
        let done = evaluate(dir.path(), &[&["--json", "--by-resemblance"], args].concat()).expect_success().json();
        let rows = done["by_resemblance"]["rows"].as_array().unwrap().clone();
        rows.iter().map(|row| [&row["n_pairs"], &row["n_found"]].map(|n| n.as_u64().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(counts(&[]), [[50, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [5, 5]]);
    std::fs::write(dir.path().join("ignore.txt"), "b2\n").unwrap();
    assert_eq!(counts(&["--ignore", "ignore.txt"])[7], [4, 4]);

    let same = text(1, 40);
    let edited = format!("{} edited", same.rsplit_once(' ').unwrap().0);
    let texts =
        [Some(same.as_str()), Some(&same), Some(&edited), Some("Two words"), Some("two words!"), Some("?"), None];
    let ids = ["a1", "a2", "a3", "short1", "short2", "symbols", "null"];
    write_documents(&dir.path().join("docs.parquet"), &ids.map(Some).into_iter().zip(texts).collect::<Vec<_>>());
    std::fs::write(dir.path().join("pairs.tsv"), "id_a\tid_b\tlabel\na1\ta2\tpos\n").unwrap();
    // The short texts differ in a symbol, so they are the same by resemblance, but not found.
    let rows = counts(&[]);
    assert_eq!((rows[0], rows[6][0], rows[7]), ([6, 0], 2, [2, 1]));
    let done = evaluate(dir.path(), &["--by-resemblance"]).expect_success().stdout;
    let table = done.split("by exact resemblance of the texts\n").nth(1).unwrap();
    let first: Vec<&str> = table.lines().map(|line| line.trim_start().split("  ").next().unwrap()).collect();
    assert_eq!(first[..3], ["resemblance", "below 0.4", "0.4 to below 0.5"]);
    assert_eq!(first[8], "1, the same");
    assert_eq!(evaluate(dir.path(), &["--json"]).json()["by_resemblance"], Value::Null);
}

#[test]
fn a_job_file_with_a_wrong_keep_order_is_refused_by_every_command() {
    let dir = labelled_set();
    std::fs::write(dir.path().join("job.toml"), "keep = [\"fetch_time sideways\"]\n").unwrap();
    let done = evaluate(dir.path(), &["--config", "job.toml"]);
    assert_eq!(done.code, 78, "{}", done.stderr);
    let done =
        nearprint_in(dir.path(), &["explain", "a1", "a2", "--documents", "docs.parquet", "--config", "job.toml"]);
    assert_eq!(done.code, 78, "{}", done.stderr);
}

#[test]
fn wrong_arguments_missing_files_and_bad_labels_have_their_exit_codes() {
    let dir = labelled_set();
    let plot = evaluate(dir.path(), &["--plot", "docs.parquet"]);
    assert_eq!(plot.code, 64, "{}", plot.stderr);
    std::fs::remove_file(dir.path().join("pairs.tsv")).unwrap();
    assert_eq!(evaluate(dir.path(), &[]).code, 66);
    for (truth, said) in [
        ("a1\ta2\tmaybe\n", "row 2: label 'maybe' is not pos, gray or neg"),
        ("a1\tnobody\tpos\n", "no document 'nobody'"),
        ("a1\ta2\tpos\na2\ta1\tneg\n", "row 3: this pair has another label"),
        ("a1\n", "too few columns"),
        ("\na1\ta1\tpos\n", "row 3: 'a1' with itself is no pair"),
    ] {
        std::fs::write(dir.path().join("pairs.tsv"), format!("id_a\tid_b\tlabel\n{truth}")).unwrap();
        let done = evaluate(dir.path(), &[]);
        assert_eq!(done.code, 65, "{}", done.stderr);
        assert!(done.error().contains(said), "{}", done.stderr);
    }
}

#[test]
fn a_column_that_is_there_twice_is_refused() {
    let dir = labelled_set();
    for (twice, other) in [("label", "neg"), ("ID_A", "a1"), ("id_b", "b1"), ("grade", "B")] {
        let header = format!("id_a\tid_b\tlabel\tgrade\t{twice}");
        std::fs::write(dir.path().join("pairs.tsv"), format!("{header}\na1\ta2\tpos\tA\t{other}\n")).unwrap();
        let done = evaluate(dir.path(), &["--by-grade"]);
        assert_eq!(done.code, 65, "{}", done.stdout);
        let said = format!("row 1: two columns '{}': keep one of them", twice.to_lowercase());
        assert!(done.error().contains(&said), "{}", done.stderr);
    }
}

#[test]
fn a_file_of_documents_is_no_truth_and_is_not_repeated_in_the_message() {
    let dir = labelled_set();
    std::fs::write(
        dir.path().join("docs.jsonl"),
        format!("{{\"id\": \"a\", \"text\": \"{}\"}}\n", "long ".repeat(1500)),
    )
    .unwrap();
    let done = nearprint_in(dir.path(), &["evaluate", "--documents", "docs.parquet", "--truth", "docs.jsonl"]);
    assert_eq!(done.code, 65, "{}", done.stdout);
    assert!(done.error().contains("no column 'id_a'") && done.error().len() < 300, "{}", done.stderr);
}

#[test]
fn a_sheet_of_tune_is_no_truth() {
    let dir = labelled_set();
    let sheet = "distance\tsketch_distance\tn_pairs\tid_a\tid_b\ttext_a\ttext_b\tlabel\tstrata\tprofile\n\
                 0\t0\t4\ta1\ta2\tx\tx\tpos\t0=4\tabc\n";
    for (name, separator) in [("sheet.tsv", "\t"), ("sheet.csv", ","), ("my sheet.csv", ";")] {
        std::fs::write(dir.path().join(name), format!("\u{feff}{}", sheet.replace('\t', separator))).unwrap();
        let done = nearprint_in(dir.path(), &["evaluate", "--documents", "docs.parquet", "--truth", name]);
        assert_eq!(done.code, 65, "{}", done.stdout);
        let named = if name.contains(' ') { format!("'{name}'") } else { name.to_owned() };
        assert!(done.error().contains(&format!("`nearprint tune --labels {named}`")), "{}", done.stderr);
    }
}

/// Each text has one word less of the first one than that before it, so that pairs lie at all distances.
#[test]
fn larger_distances_that_are_listed_change_nothing_of_what_the_profile_finds() {
    let dir = tempfile::tempdir().unwrap();
    let (first, last) = (text(1, 120), text(2, 120));
    let (first, last): (Vec<&str>, Vec<&str>) = (first.split(' ').collect(), last.split(' ').collect());
    let texts: Vec<(String, String)> =
        (0..70).map(|n| (format!("d{n:02}"), [&last[..n], &first[n..]].concat().join(" "))).collect();
    let rows: Vec<(Option<&str>, Option<&str>)> =
        texts.iter().map(|(id, text)| (Some(id.as_str()), Some(text.as_str()))).collect();
    write_documents(&dir.path().join("docs.parquet"), &rows);
    std::fs::write(dir.path().join("pairs.tsv"), "id_a\tid_b\tlabel\nd00\td01\tpos\n").unwrap();
    let [own, wide] = [&["--json"][..], &["--json", "--max-distance", "24"]]
        .map(|more| evaluate(dir.path(), more).expect_success().json());
    assert!(own["judge"]["n_read"].as_u64().unwrap() > 100, "{own}");
    for key in ["judge", "n_found", "n_true", "precision", "recall"] {
        assert_eq!(own[key], wide[key], "{key}");
    }
    assert!(wide["by_max_distance"].as_array().unwrap().len() > own["by_max_distance"].as_array().unwrap().len());
}
