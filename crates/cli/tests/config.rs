//! Job files that are written, checked and described, and what is made from the arguments.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::support::{self, Night, Ran, expect, nearprint_in, text, write_documents};

const DT: &str = "2026-11-20";

/// The check of a job file with the three places and `more` after them.
fn check(more: &str) -> Ran {
    let night = Night::new(more);
    nearprint_in(night.path(), &["config", "check", "job.toml", "--json"])
}

#[test]
fn a_written_job_file_is_right_and_never_overwrites_one() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("my crawl")).unwrap();
    let init = ["config", "init", "job.toml", "--documents", "my crawl", "--store", "s\"tore", "--json"];
    let done = nearprint_in(dir.path(), &init).expect_success().json();
    assert_eq!(done["next"], "nearprint store init --config job.toml");
    let before = std::fs::read(dir.path().join("job.toml")).unwrap();
    expect(&nearprint_in(dir.path(), &init), 73, &["job.toml: it is there already"]);
    assert_eq!(std::fs::read(dir.path().join("job.toml")).unwrap(), before);
    nearprint_in(dir.path(), &["store", "init", "--config", "job.toml"]).expect_success();
    nearprint_in(dir.path(), &["config", "check", "job.toml"]).expect_success();
    write_documents(&dir.path().join(format!("my crawl/dt={DT}/a.parquet")), &[(Some("a"), Some("b"))]);
    nearprint_in(dir.path(), &["run", "-c", "job.toml", "--dt", DT]).expect_success();
}

#[test]
fn a_wrong_key_or_name_is_found_by_line_and_column_with_the_one_that_was_meant() {
    for (job, parts) in [
        (
            "max_bad_row = 3\n",
            vec!["job.toml: line 5, column 1: unknown key 'max_bad_row'", "did you mean 'max_bad_rows'?"],
        ),
        ("[join]\nmax_distanc = 3\n", vec!["line 6, column 1", "in [join]", "did you mean 'max_distance'?"]),
        ("[join]\nmax_distance = 3\nid_column = \"x\"\n", vec!["line 7", "move it above the first [table]"]),
        ("max_distance = 3\n", vec!["line 5", "it stands in [join]"]),
        ("max_cluster = 30000\n", vec!["line 5", "it stands in [breakers]"]),
        ("max_distanze = 3\n", vec!["line 5", "did you mean 'max_distance' in [join]?"]),
        ("  profile = \"defualt\"\n", vec!["line 5, column 13", "did you mean 'default'?"]),
        ("pairs = \"forst\"\n", vec!["line 5, column 9: pairs", "did you mean 'forest'?"]),
        ("[tokenize.tokenizer]\nkind = \"jeiba\"\n", vec!["line 6", "did you mean 'jieba'?"]),
        ("zzz = 1\n", vec!["line 5", "unknown key 'zzz'", "`nearprint config schema` lists the keys"]),
        ("max_bad_rows = \"x\"\n", vec!["line 5, column 16", "max_bad_rows"]),
        ("keep = [\n", vec!["line 5"]),
    ] {
        let checked = check(job);
        expect(&checked, 78, &parts);
        let night = Night::new(job);
        let ran = night.run(DT, &[]);
        assert_eq!(ran.error(), checked.error(), "a run says the same");
        assert_eq!(ran.json()["hint"], "nearprint config check job.toml");
    }
}

#[test]
fn a_job_file_that_is_not_utf8_is_named_with_the_place_of_its_first_wrong_byte() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("job.toml"), b"store = \"s\"\ndocuments = \"c\xe4\"\n").unwrap();
    for command in [&["config", "check", "job.toml"][..], &["run", "-c", "job.toml", "--dt", DT]] {
        expect(&nearprint_in(dir.path(), command), 78, &["job.toml: line 2, column 15: not UTF-8"]);
    }
}

#[test]
fn a_night_whose_folder_is_empty_is_no_night_with_documents() {
    let night = Night::new("");
    std::fs::create_dir_all(night.path().join(format!("documents/dt={DT}"))).unwrap();
    let said = nearprint_in(night.path(), &["config", "check", "job.toml"]).expect_success();
    assert!(said.stdout.contains("; no night with documents was found\n"), "{}", said.stdout);
    assert!(!said.stdout.contains(&format!("--dt {DT}")), "{}", said.stdout);
    night.documents("2026-11-01", &[("a", &text(1, 40))]);
    let said = nearprint_in(night.path(), &["config", "check", "job.toml"]).expect_success();
    assert!(
        said.stdout.contains("and the documents are there\n") && said.stdout.contains("dt=2026-11-01"),
        "{}",
        said.stdout
    );
    std::fs::remove_dir_all(night.path().join("documents")).unwrap();
    write_documents(&night.path().join("documents/pages.parquet"), &[(Some("a"), Some("b"))]);
    let said = night.run(DT, &[]);
    expect(&said, 66, &["(put the documents of a night into documents/dt="]);
}

#[test]
fn a_check_finds_places_that_are_missing_or_lie_in_one_another() {
    let night = Night::new("");
    let made_later = nearprint_in(night.path(), &["config", "check", "job.toml"]).expect_success().stdout;
    assert!(made_later.contains("the first night makes it"), "{made_later}");
    assert!(made_later.contains("keys and values are right; no night with documents was found\n"), "{made_later}");
    night.documents(DT, &[("a", &text(1, 40))]);
    let there = nearprint_in(night.path(), &["config", "check", "job.toml"]).expect_success().stdout;
    assert!(there.contains("keys and values are right, and the documents are there\n"), "{there}");
    let changed = |from: &str, to: &str| {
        let night = Night::new("");
        let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
        std::fs::write(night.path().join("job.toml"), job.replace(from, to)).unwrap();
        nearprint_in(night.path(), &["config", "check", "job.toml"])
    };
    expect(&changed("documents = \"documents\"", "documents = \"crawl\""), 78, &["no documents at crawl"]);
    expect(&changed("output = \"results\"", "output = \"store/results\""), 78, &["store"]);
    expect(&changed("store = \"store\"\n", ""), 78, &["no 'store'"]);
    let none = nearprint_in(Path::new("/"), &["config", "check", "/nowhere/job.toml"]);
    expect(&none, 66, &["/nowhere/job.toml"]);
}

#[test]
fn what_ends_every_run_before_its_work_ends_a_check_and_a_dry_run_too() {
    for (job, code, of_check, part) in [
        ("references = [\"nope\"]\n", 66, 78, "no reference store at nope"),
        ("lock = \"nope/lock\"\n", 74, 74, "nope/lock: "),
        ("lock = \"documents\"\n", 64, 78, "documents: "),
        ("[resources]\nspill_dir = \"nope\"\n", 74, 74, "nope: no such folder: create it"),
    ] {
        let night = Night::new(job);
        night.documents(DT, &[("a", &text(1, 40))]);
        let checked = nearprint_in(night.path(), &["config", "check", "job.toml"]);
        expect(&checked, of_check, &["job.toml: line ", part]);
        let dry = night.run(DT, &["--dry-run"]);
        expect(&dry, code, &[part]);
        let ran = night.run(DT, &[]);
        assert_eq!((ran.code, ran.error()), (code, dry.error()), "{}", ran.stderr);
    }
}

#[test]
fn a_lock_that_another_run_holds_is_no_fault_and_no_check_makes_its_file() {
    let night = Night::new("lock = \"lock\"\n");
    night.documents(DT, &[("a", &text(1, 40))]);
    let both = || {
        nearprint_in(night.path(), &["config", "check", "job.toml"]).expect_success();
        night.run(DT, &["--dry-run"]).expect_success();
    };
    both();
    let path = night.path().join("lock");
    assert!(!path.exists());
    let held = std::fs::File::create(&path).unwrap();
    held.lock().unwrap();
    both();
}

#[test]
fn nights_in_folders_of_another_form_are_found_by_a_check_as_by_a_run() {
    for (folder, layout) in
        [("20261120", "{dt:%Y%m%d}"), ("year=2026", "year={yyyy}/month={mm}/day={dd}"), ("DT=2026-11-20", "DT={dt}")]
    {
        let night = Night::new("");
        let file = night.path().join("documents").join(folder).join("a.parquet");
        write_documents(&file, &[(Some("a"), Some(&text(1, 40)))]);
        let write = format!("write the place with the date in it, documents = \"documents/{layout}\"");
        let checked = nearprint_in(night.path(), &["config", "check", "job.toml"]);
        expect(&checked, 78, &["job.toml: line 1, column 1: documents: ", &write]);
        expect(&night.run(DT, &[]), 78, &[&write]);
    }
    // One folder of another form hides no nights.
    let night = Night::new("");
    for folder in ["2026/11/20", "2026/11/5"] {
        let file = night.path().join("crawl").join(folder).join("a.parquet");
        write_documents(&file, &[(Some("a"), Some(&text(1, 40)))]);
    }
    let job = "documents = \"crawl/{yyyy}/{mm}/{dd}\"\nstore = \"store\"\noutput = \"results\"\ncreate_store = true\n";
    std::fs::write(night.path().join("job.toml"), job).unwrap();
    nearprint_in(night.path(), &["config", "check", "job.toml"]).expect_success();
    expect(&night.run("2026-11-05", &[]), 78, &["crawl/{yyyy}/{dt:%-m}/{dt:%-d}"]);
}

#[test]
fn a_value_that_is_wrong_for_its_meaning_is_found_by_line_and_column_too() {
    for (job, parts) in [
        ("max_lost_share = 4\n", vec!["job.toml: line 5, column 1: max_lost_share: 4 is not a share"]),
        ("[join]\nmax_distance = 100\n", vec!["job.toml: line 6, column 1: max_distance: 100"]),
        ("html_text = { selector = \"a[\" }\n", vec!["job.toml: line 5, column 1: html_text: 'a['"]),
        ("html_text = \"selector\"\n", vec!["line 5, column 13: html_text: this name needs a value"]),
        ("keep = [\"x y z\"]\n", vec!["job.toml: line 5, column 1: keep: 'x y z'"]),
        ("[breakers]\nmax_source_loss = 7\n", vec!["line 6, column 1: breakers.max_source_loss: 7 is not a share"]),
    ] {
        let checked = check(job);
        expect(&checked, 78, &parts);
        assert!(!checked.stderr.contains("hint:"), "a check does not lead to itself: {}", checked.stderr);
    }
}

#[test]
fn what_only_the_tokenizer_refuses_is_found_by_a_check_and_a_dry_run_too() {
    for (job, part) in [
        ("[tokenize.tokenizer]\nngram = 0\n", "line 6, column 1: tokenize.tokenizer.ngram: "),
        (
            "[tokenize.stop_words]\ndrop_parts_of_speech = [\"u\"]\n",
            "line 6, column 1: tokenize.stop_words.drop_parts_of_speech: ",
        ),
        ("user_dictionary = \"words.txt\"\n", "line 5, column 1: user_dictionary: "),
    ] {
        let night = Night::new(job);
        std::fs::write(night.path().join("words.txt"), "word 3\n").unwrap();
        night.documents(DT, &[("a", &text(1, 40))]);
        let checked = nearprint_in(night.path(), &["config", "check", "job.toml"]);
        expect(&checked, 78, &[part]);
        assert_eq!(checked.stderr.matches("job.toml: line").count(), 1, "{}", checked.stderr);
        expect(&night.run(DT, &["--dry-run"]), 78, &[part]);
        expect(&night.run(DT, &[]), 78, &[part]);
    }
}

#[test]
fn what_is_left_of_a_profile_whose_section_is_wrong_is_no_fault_of_its_own() {
    let job = "user_dictionary = \"words.txt\"\nbits = 33\n[tokenize.tokenizer]\nkind = \"jieba\"\nlong_run = 0\n";
    let night = Night::new(job);
    std::fs::write(night.path().join("words.txt"), "word 3\n").unwrap();
    let checked = nearprint_in(night.path(), &["config", "check", "job.toml"]);
    expect(&checked, 78, &["bits"]);
    assert!(!checked.stderr.contains("dictionary"), "{}", checked.stderr);
}

#[test]
fn another_tokenizer_does_not_inherit_what_it_refuses_from_the_profile() {
    for kind in ["whitespace", "jieba", "char_ngrams"] {
        let night = Night::new(&format!("[tokenize.tokenizer]\nkind = \"{kind}\"\n"));
        night.documents(DT, &[("a", &text(1, 40))]);
        night.run(DT, &[]).expect_success();
    }
    expect(&check("[tokenize.tokenizer]\nkind = \"jieba\"\nlong_run = 9\n"), 78, &["`tokenizer.long_run` is not used"]);
}

#[test]
fn a_written_job_file_takes_another_profile_as_it_is() {
    for profile in ["strict", "loose", "han-bigrams", "paper"] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("crawl")).unwrap();
        nearprint_in(dir.path(), &["config", "init", "job.toml", "--documents", "crawl"]).expect_success();
        let job = std::fs::read_to_string(dir.path().join("job.toml")).unwrap();
        let other = job.replace("profile = \"default\"", &format!("profile = \"{profile}\""));
        assert_ne!(job, other);
        std::fs::write(dir.path().join("job.toml"), other).unwrap();
        write_documents(
            &dir.path().join("x.parquet"),
            &[(Some("a"), Some(&text(1, 40))), (Some("b"), Some(&text(2, 40)))],
        );
        let limits = |how: [&str; 2]| {
            let explain = ["explain", "a", "b", "--documents", "x.parquet", "--json"];
            let found = nearprint_in(dir.path(), &[&explain[..], &how].concat()).expect_success().json();
            ["max_distance", "max_sketch_distance"].map(|key| found[key].clone())
        };
        assert_eq!(limits(["--config", "job.toml"]), limits(["--profile", profile]), "{profile}");
    }
}

#[test]
fn a_check_says_what_it_did_not_look_at_and_refuses_the_folder_of_one_night() {
    let night = Night::new("keep = [\"len desc\"]\n");
    night.documents(DT, &[("a", &text(1, 40))]);
    let check = || nearprint_in(night.path(), &["config", "check", "job.toml"]);
    expect(&check(), 78, &["line 5, column 1: keep: no column 'len'", "(it has id, text)"]);
    std::fs::remove_dir_all(night.path().join(format!("documents/dt={DT}"))).unwrap();
    let said = check().expect_success().stdout;
    assert!(said.contains("columns    not looked at: there is no night with documents yet"), "{said}");
    let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
    let of_one = job.replace("documents = \"documents\"", &format!("documents = \"documents/dt={DT}/\""));
    std::fs::write(night.path().join("job.toml"), of_one).unwrap();
    expect(&check(), 78, &["line 1", "is the folder of one night: name its parent, documents"]);
}

/// A file with a fault of each kind, behind the three places of four lines.
const FAULTS: &str = "max_bad_row = 3
pairs = \"forst\"
max_bad_files = \"x\"
keep = [\"lenght desc\", \"x y z\"]
id_column = \"nope\"
max_lost_share = 4
require_marker = \"a/b\"
[join]
max_distance = 100
[breakers]
max_source_loss = 7
max_rate_change = -1
";

#[test]
fn all_faults_of_a_file_are_found_at_once_each_with_its_line_and_column_and_what_was_meant() {
    let night = Night::new(FAULTS);
    night.documents(DT, &[("a", &text(1, 40))]);
    let checked = nearprint_in(night.path(), &["config", "check", "job.toml", "--json"]);
    expect(&checked, 78, &["line 5, column 1: unknown key 'max_bad_row'"]);
    let findings = checked.json()["findings"].clone();
    let found = findings.as_array().unwrap().iter();
    let found: Vec<(u64, u64, &str, Option<&str>)> = found
        .map(|f| {
            let at = |name: &str| f[name].as_u64().unwrap();
            (at("line"), at("column"), f["key"].as_str().unwrap(), f["meant"].as_str())
        })
        .collect();
    let expected = [
        (5, 1, "max_bad_row", Some("max_bad_rows")),
        (6, 9, "pairs", Some("forest")),
        (7, 17, "max_bad_files", None),
        (8, 1, "keep", None),
        (8, 1, "keep", Some("length")),
        (9, 1, "id_column", None),
        (10, 1, "max_lost_share", None),
        (11, 1, "require_marker", None),
        (13, 1, "max_distance", None),
        (15, 1, "breakers.max_source_loss", None),
        (16, 1, "breakers.max_rate_change", None),
    ];
    assert_eq!(found, expected, "{}", checked.stderr);
    assert_eq!(checked.stderr.lines().filter(|line| line.starts_with("nearprint: error: ")).count(), expected.len());
    // A run says at once what it finds without looking at the documents.
    let ran = night.run(DT, &[]);
    let error = ran.json()["error"].as_str().unwrap().to_owned();
    for part in ["'max_bad_row'", "'forest'", "max_bad_files", "'x y z'", "'a/b'", "max_distance", "max_rate_change"] {
        assert!(ran.code == 78 && error.contains(part), "{part}: {error}");
    }
    let meaning = Night::new("keep = [\"x y z\"]\nrequire_marker = \"a/b\"\n").run(DT, &[]).json();
    assert_eq!(meaning["findings"].as_array().unwrap().len(), 2, "{meaning}");
}

#[test]
fn a_text_that_is_no_toml_is_one_fault() {
    let checked = check("keep = [\nid_column = \n a = b");
    expect(&checked, 78, &["line 6"]);
    assert_eq!(checked.json()["findings"].as_array().unwrap().len(), 1, "{}", checked.stderr);
}

#[test]
fn a_store_that_is_not_made_yet_is_no_fault_and_hides_none() {
    let night = Night::new("");
    let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap().replace("create_store = true\n", "");
    std::fs::write(night.path().join("job.toml"), &job).unwrap();
    let check = || nearprint_in(night.path(), &["config", "check", "job.toml", "--json"]);
    let done = check().expect_success().json();
    assert_eq!(
        (done["has_store"].as_bool(), done["next"].as_str()),
        (Some(false), Some("nearprint store init --config job.toml"))
    );
    night.documents(DT, &[("a", &text(1, 40))]);
    let done = check().expect_success().json();
    assert_eq!(done["next"], format!("nearprint run --config job.toml --dt {DT} --create-store"));
    assert_eq!(done["looked_at"], format!("documents/dt={DT}/part-0.parquet"));
    std::fs::write(night.path().join("job.toml"), format!("{job}source_column = \"txt\"\n")).unwrap();
    let checked = check();
    expect(&checked, 78, &["line 4, column 1: source_column: no column 'txt'", "did you mean 'text'?"]);
    assert!(!checked.stderr.contains("no store"), "{}", checked.stderr);
    // The command that it names makes the store.
    std::fs::write(night.path().join("job.toml"), &job).unwrap();
    night.run(DT, &["--create-store"]).expect_success();
    assert_eq!(check().expect_success().json()["has_store"], true);
}

#[test]
fn the_documented_job_file_sets_defaults_and_places_alone() {
    let documented = std::fs::read_to_string(support::root().join("jobs/nightly.toml")).unwrap();
    let documented: toml::Table = toml::from_str(&documented).unwrap();
    assert!(!documented.contains_key("keep"), "it names columns that other documents do not have");
    assert!(documented["resources"].as_table().unwrap().is_empty(), "they fit one machine");
    let schema = nearprint_in(Path::new("/"), &["config", "schema"]).expect_success().stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let tables = documented.iter().filter_map(|(name, value)| Some((&schema["properties"][name], value.as_table()?)));
    for (schema, table) in tables.chain([(&schema, &documented)]) {
        for (key, value) in table {
            let default = schema["properties"][key].get("default");
            assert_ne!(default, Some(&Value::Null), "{key}: another profile has another value");
            let value = serde_json::to_value(value).unwrap();
            assert!(default.is_none_or(|default| *default == value), "{key} = {value}, but the default is {default:?}");
        }
    }
}

/// The keys that the parser lists for a table when it refuses one.
fn parsed_keys(table: &str) -> BTreeSet<String> {
    let said = check(&format!("{table}zzz = 1\n"));
    assert_eq!(said.code, 78, "{}", said.stderr);
    let schema = nearprint_in(Path::new("/"), &["config", "schema"]).expect_success().stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let name = table.trim().trim_matches(['[', ']']);
    let at = name.split('.').filter(|part| !part.is_empty()).fold(&schema, |at, part| &at["properties"][part]);
    at["properties"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn every_key_of_the_schema_is_one_of_the_parser_and_every_key_of_the_documented_job_file_is_in_the_schema() {
    let documented = std::fs::read_to_string(support::root().join("jobs/nightly.toml")).unwrap();
    let top = parsed_keys("");
    for table in
        ["", "[join]\n", "[resources]\n", "[s3]\n", "[breakers]\n", "[tokenize.features]\n", "[tokenize.normalize]\n"]
    {
        for key in parsed_keys(table) {
            // A value of a type that no key has: the parser refuses the value, and not the key.
            let refused = check(&format!("{table}{key} = 2026-11-20\n"));
            assert_eq!(refused.code, 78, "{table}{key}");
            let unknown = [format!("unknown key '{key}'"), format!("unknown field '{key}'")];
            assert!(!unknown.iter().any(|said| refused.error().contains(said)), "{table}{key}: {}", refused.stderr);
        }
    }
    for line in documented.lines() {
        let line = line.trim_start_matches("# ");
        if let Some((key, _)) =
            line.split_once(" = ").filter(|(key, _)| key.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
        {
            let everywhere = nearprint_in(Path::new("/"), &["config", "schema"]).expect_success().stdout;
            assert!(top.contains(key) || everywhere.contains(&format!("\"{key}\":")), "{key}");
        }
    }
}

/// The names of all keys below a part of the schema.
fn keys_below(schema: &Value, keys: &mut BTreeSet<String>) {
    for (key, value) in schema["properties"].as_object().into_iter().flatten() {
        keys.insert(key.clone());
        keys_below(value, keys);
    }
}

#[test]
fn the_documented_job_file_has_every_key_of_the_schema() {
    let documented = std::fs::read_to_string(support::root().join("jobs/nightly.toml")).unwrap();
    let schema = nearprint_in(Path::new("/"), &["config", "schema"]).expect_success().stdout;
    let mut keys = BTreeSet::new();
    keys_below(&serde_json::from_str(&schema).unwrap(), &mut keys);
    let has = |key: &String| {
        let mut lines = documented.lines().map(|line| line.trim_start_matches("# "));
        lines.any(|line| {
            line.starts_with(&format!("{key} = ")) || (line.starts_with('[') && line.contains(key.as_str()))
        })
    };
    let missing: Vec<_> = keys.iter().filter(|key| !has(key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_shipped_job_files_have_no_unknown_keys() {
    for job in ["jobs/nightly.toml", "jobs/sample.toml"] {
        let checked = nearprint_in(&support::root(), &["config", "check", job]);
        assert!(!checked.stderr.contains("unknown"), "{job}: {}", checked.stderr);
    }
}

#[test]
fn completions_and_manual_pages_have_all_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = nearprint_in(Path::new("/"), &["completions", shell]).expect_success().stdout;
        assert!(script.contains("drop-night") && script.contains("dry-run"), "{shell}: {script}");
    }
    let dir = tempfile::tempdir().unwrap();
    let script = nearprint_in(Path::new("/"), &["completions", "bash"]).expect_success().stdout;
    std::fs::write(dir.path().join("nearprint.bash"), script).unwrap();
    let typed = ". ./nearprint.bash; COMP_WORDS=(nearprint store comp); COMP_CWORD=2; _nearprint nearprint comp store; echo ${COMPREPLY[@]}";
    let shell = support::Run::new(Path::new("bash"), dir.path(), &["-c", typed]).run().unwrap();
    assert_eq!(shell.stdout.trim(), "compact", "{}", shell.stderr);
    nearprint_in(dir.path(), &["man", "pages"]).expect_success();
    let page = |name: &str| std::fs::read_to_string(dir.path().join("pages").join(name)).unwrap();
    assert!(page("nearprint.1").contains(".TH") && page("nearprint-store-gc.1").contains("grace"));
    assert!(nearprint_in(dir.path(), &["man"]).expect_success().stdout.contains(".TH"));
    let night = Night::new("");
    night.documents(DT, &[("a", &text(1, 40))]);
}
