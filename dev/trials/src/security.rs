//! S1 to S16: what an attacker could try. S3 is `canary`; S4 and S5 are B2 to B5 and B17 to B21.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::serving::Serving;
use nearprint_harness::folder::{
    DT, Folder, Outcome, expect, files_below, parquet_of, parquet_with, snapshot_of, strings,
};
use nearprint_harness::measured::{Checks, Options, Trial, shortened};
use nearprint_harness::proxy::{Action, Proxy, Rule};
use nearprint_harness::random::text;
use nearprint_harness::row::Row;
use nearprint_harness::runner::{Ran, Signal};
use nearprint_harness::server::Server;
use nearprint_harness::{Result, measured};
use serde_json::json;

const TRIALS: [Trial; 17] = [
    ("S1", "200 ids that look like paths", "0; no file but those of every night", ids_as_paths),
    ("S1-symlinks", "symlinks where files are written", "what they point to is as before", symlinks_in_output),
    ("S2", "documents outside of --root", "64; inside: 0", roots),
    (
        "S2-log",
        "the log of a Delta table names another bucket or folder, with and without --root",
        "64, and no request; with clone_roots or roots that cover it: 0",
        files_of_logs,
    ),
    (
        "S2-unlisted",
        "a partition of a Delta table whose folder may not be listed, as another user and on S3",
        "the log counts; if no name may be listed, a warning; 69 if the listing fails",
        unlisted_tables,
    ),
    ("S6", "50 scripts as ids and texts, in a headless browser", "none is executed", scripts_in_reports),
    ("S7", "terminal escapes in ids and texts", "no control character in what is said", terminal_escapes),
    ("S7-csv", "formulas in the sheet of tune", "no cell begins with = + - @", formulas),
    ("S8", "${VAR}, quotes and SQL in names", "taken literally", injection),
    ("S9", "umask 000", "temporary folders of a run 0700, files 0600", temporary_modes),
    ("S10", "a symlink as lock file; stale folders of others", "neither followed nor removed", locks_and_stale_folders),
    ("S11", "endpoints without TLS, with a bad certificate", "78 without allow_http; never accepted", endpoints),
    ("S12", "10^5 crafted ids", "as fast as ordinary ones", crafted_ids),
    (
        "S13",
        "where dependencies come from",
        "one registry, with checksums; advisories where cargo-deny is there",
        supply_chain,
    ),
    (
        "S14",
        "files beside the results, aimed at commits, logs of tables, manifests and documents",
        "64 or 73, and every byte is as before",
        files_aimed_at_data,
    ),
    (
        "S15",
        "a mistyped year, with keep_nights",
        "64; with --future no night is forgotten, and drop-night gives the store back",
        mistyped_year,
    ),
    (
        "S16",
        "330 clients without the token that ask a server every second, and 330 that say nothing",
        "the token's holder is answered, within a second each time",
        strangers,
    ),
];

pub fn run(options: &Options) -> Vec<Row> {
    measured::rows(options, &TRIALS)
}

fn ended(done: &Ran, codes: &[i32]) -> Outcome {
    match done.defect() {
        Some(defect) => Err(defect),
        None => expect(codes.contains(&done.code), || format!("{}, expected {codes:?}", done.said())),
    }
}

fn path_ids(outside: &Path) -> Vec<String> {
    let target = outside.join("made-by-an-id").display().to_string();
    let stems = [
        "../../etc/x",
        "../x",
        "..",
        ".",
        "/",
        "//",
        "/etc/x",
        "a/b/c",
        "a\\b",
        "..\\..\\x",
        "C:\\x",
        "file:///etc/passwd",
        "s3://b/k",
        "~",
        "~/x",
        "$HOME/x",
        "%2e%2e%2fx",
        "..%00/x",
        "a\0b",
        "\0",
        "a\nb",
        "\r\n",
        "con",
        "nul",
        "x?y=z",
        "x#y",
        "*",
        "[a]",
        "{dt}",
        "dt=1/x",
        "gen=x",
        "_current",
        "_SUCCESS",
        "manifest.json",
        "part-00000.parquet",
        "-rf",
        "--help",
        ";rm -rf x",
        "`id`",
        "$(id)",
        "|id",
        "&",
        ">x",
        "<x",
        "\u{2025}/\u{2025}/x",
        "\u{ff0e}\u{ff0e}/x",
        "\u{202e}txt",
        "a".repeat(255).as_str(),
        "b/".repeat(200).as_str(),
        "e".repeat(10_240).as_str(),
    ]
    .map(str::to_owned);
    let mut ids: Vec<String> = stems.into_iter().collect();
    ids.push(target.clone());
    ids.push(format!("..{target}"));
    let variants: Vec<String> = ids.iter().flat_map(|id| ["../", "x/", " "].map(|p| format!("{p}{id}"))).collect();
    ids.extend(variants);
    ids.truncate(200);
    ids
}

fn ids_as_paths(options: &Options, checks: &mut Checks) -> Result<()> {
    let outside = options.scratch()?;
    let ids = path_ids(outside.path());
    // Two names for the parts of a run that an id could reach.
    let names = |folder: &Folder| -> Vec<String> {
        let below = files_below(folder.path());
        below.iter().filter_map(|f| f.strip_prefix(folder.path()).ok()).map(without_digests).collect()
    };
    let texts: Vec<String> = (0..ids.len() as u64).map(|i| text(i / 2, 60)).collect();
    let night = |ids: &[String]| -> Result<(Folder, Ran)> {
        let rows: Vec<_> = ids.iter().zip(&texts).map(|(id, text)| (Some(id.as_str()), Some(text.as_str()))).collect();
        let folder = Folder::new(options, "")?;
        folder.put("part-0.parquet", &parquet_of(&rows)?)?;
        let done = folder.run(&[])?;
        Ok((folder, done))
    };
    let (odd, done) = night(&ids)?;
    checks.count("the night", odd.published_soundly(&done, &[]).map(drop));
    let plain: Vec<String> = (0..ids.len()).map(|i| format!("id{i:04}")).collect();
    let (usual, _) = night(&plain)?;
    let (found, expected) = (names(&odd), names(&usual));
    checks.count(
        "names of files",
        expect(found == expected && found.len() > 8, || format!("{found:?}, expected {expected:?}")),
    );
    let strays = files_below(outside.path());
    checks.count("outside", expect(strays.is_empty(), || format!("{strays:?}")));
    let decided = odd.decisions()?;
    let missing: Vec<_> = ids.iter().filter(|id| !decided.contains_key(*id)).map(|id| shortened(id, 40)).collect();
    checks.count("ids", expect(missing.is_empty(), || format!("not found again: {missing:?}")));
    checks.note(format!("{} ids, {} files", ids.len(), found.len()));
    Ok(())
}

/// A path whose digests are put aside: they differ from night to night.
fn without_digests(path: &Path) -> String {
    let digest = |part: &str| part.len() >= 32 && part.chars().all(|c| c.is_ascii_hexdigit());
    let text = path.display().to_string();
    let plain = |part: &str| match part.trim_end_matches(".parquet").rsplit_once(['-', '=']) {
        Some((name, last)) if digest(last) => format!("{name} #"),
        _ if digest(part) => "#".to_owned(),
        _ => part.to_owned(),
    };
    text.split('/').map(plain).collect::<Vec<_>>().join("/")
}

fn symlinks_in_output(options: &Options, checks: &mut Checks) -> Result<()> {
    const VICTIM: &[u8] = b"somebody's";
    let victims = options.scratch()?;
    let untouched =
        |file: &Path| expect(std::fs::read(file).is_ok_and(|c| c == VICTIM), || format!("{} changed", file.display()));
    let bait = |name: &str, at: &Path| -> Result<PathBuf> {
        let victim = victims.path().join(name);
        std::fs::write(&victim, VICTIM)?;
        std::fs::create_dir_all(at.parent().ok_or("no folder")?)?;
        symlink(&victim, at)?;
        Ok(victim)
    };
    let log = "decisions/_delta_log/00000000000000000000.json";
    for (name, place) in [("log", log.to_owned()), ("records", format!("_nearprint/dt={DT}/manifest.json"))] {
        let folder = Folder::new(options, "")?;
        folder.good()?;
        let victim = bait(name, &folder.path().join("results").join(place))?;
        let done = folder.run(&[])?;
        checks.count(name, published_or(&folder, &done, &[65, 73, 74, 77, 78]).and(untouched(&victim)));
    }
    let folder = Folder::new(options, "")?;
    folder.good()?;
    let victim = bait("commit", &folder.path().join("store/_commits/00000001.json"))?;
    let done = folder.run(&[])?;
    checks.count("the first commit", published_or(&folder, &done, &[65, 73, 74, 75, 77, 78]).and(untouched(&victim)));
    let folder = Folder::new(options, "")?;
    folder.good()?;
    for name in ["part-00000.parquet", "_SUCCESS", "_skipped/part-00000.parquet", "_quarantine/part-00000.parquet"] {
        bait(&name.replace('/', "-"), &folder.path().join("out").join(name))?;
    }
    let args =
        ["fingerprint", "--documents", "documents", "--output", "out", "--spill-dir", "spill", "--replace", "--json"];
    let done = folder.command(&args).run()?;
    let all = files_below(victims.path()).iter().try_for_each(|v| untouched(v));
    let made = std::fs::read(folder.path().join("out/part-00000.parquet")).is_ok_and(|c| c.starts_with(b"PAR1"));
    let outcome =
        ended(&done, &[0, 73, 74, 77]).and(expect(done.code != 0 || made, || "nothing was written".to_owned()));
    checks.count("fingerprint --replace", outcome.and(all));
    // A spill folder that is a symlink is the operator's choice; a temporary folder in it that somebody else laid out is not.
    let folder = Folder::new(options, "")?;
    folder.good()?;
    let elsewhere = options.scratch()?;
    std::fs::write(elsewhere.path().join("keep"), VICTIM)?;
    symlink(elsewhere.path(), folder.path().join("spill/nearprint-aaaaaa"))?;
    let done = folder.run(&[])?;
    checks.count(
        "a symlink named as a stale folder",
        ended(&done, &[0])
            .and(expect(done.summary()["status"] == "published", || done.stdout.clone()))
            .and(untouched(&elsewhere.path().join("keep"))),
    );
    Ok(())
}

/// Published soundly, or ended with one of these.
fn published_or(folder: &Folder, done: &Ran, codes: &[i32]) -> Outcome {
    if done.code == 0 { folder.published_soundly(done, &[]).map(drop) } else { ended(done, codes) }
}

fn roots(options: &Options, checks: &mut Checks) -> Result<()> {
    let elsewhere = options.scratch()?;
    let content = parquet_of(&[(Some("outside"), Some(&text(3, 40)))])?;
    std::fs::create_dir_all(elsewhere.path().join(format!("dt={DT}")))?;
    std::fs::write(elsewhere.path().join(format!("dt={DT}/part-0.parquet")), &content)?;
    let outside = elsewhere.path().display().to_string();
    let new = || -> Result<Folder> {
        let folder = Folder::new(options, "")?;
        folder.good()?;
        symlink(elsewhere.path(), folder.path().join("documents-link"))?;
        Ok(folder)
    };
    let folder = new()?;
    let root = folder.path().display().to_string();
    let done = folder.run(&["--root", &root])?;
    checks.count("inside", folder.published_soundly(&done, &["--root", &root]).map(drop));
    let folder = new()?;
    let root = folder.path().display().to_string();
    let flags = ["--root", root.as_str(), "--root", outside.as_str(), "--documents", outside.as_str()];
    let done = folder.run(&flags)?;
    checks.count("inside of the second root", ended(&done, &[0]));
    let file_url = format!("file://{outside}");
    let up = format!("documents/../../{}", elsewhere.path().file_name().ok_or("no name")?.to_string_lossy());
    let prefix = format!("{}-more", folder.path().display());
    for documents in [
        outside.as_str(),
        file_url.as_str(),
        &up,
        "documents-link",
        "s3://bucket/documents",
        "/",
        "../*",
        &prefix,
        "documents/../..",
    ] {
        let folder = new()?;
        let root = folder.path().display().to_string();
        let done = folder.run(&["--root", &root, "--documents", documents])?;
        checks.count(&format!("--documents {documents}"), folder.refused(&done, &[64], &["--root"]));
    }
    let folder = new()?;
    symlink(elsewhere.path().join(format!("dt={DT}/part-0.parquet")), folder.place("linked.parquet"))?;
    let root = folder.path().display().to_string();
    let done = folder.run(&["--root", &root])?;
    checks.count("a symlink among the documents", folder.refused(&done, &[64], &["--root", "linked.parquet"]));
    Ok(())
}

/// The first version of a Delta table that is partitioned by night, with files of one night.
fn log_of(files: &[(&str, usize)]) -> Vec<u8> {
    let protocol = json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}});
    let metadata = json!({"metaData": {
        "id": "1", "format": {"provider": "parquet"}, "schemaString": "{}", "partitionColumns": ["dt"], "configuration": {},
    }});
    let adds = files.iter().map(
        |(path, size)| json!({"add": {"path": path, "partitionValues": {"dt": DT}, "size": size, "dataChange": true}}),
    );
    let lines: Vec<String> = [protocol, metadata].into_iter().chain(adds).map(|action| action.to_string()).collect();
    lines.join("\n").into_bytes()
}

const FIRST_VERSION: &str = "documents/_delta_log/00000000000000000000.json";

fn files_of_logs(options: &Options, checks: &mut Checks) -> Result<()> {
    let elsewhere = options.scratch()?;
    let secret = parquet_of(&[(Some("secret"), Some(&text(3, 40)))])?;
    std::fs::write(elsewhere.path().join("secret.parquet"), &secret)?;
    let outside = elsewhere.path().display().to_string();
    let name = elsewhere.path().file_name().ok_or("no name")?.to_string_lossy().into_owned();
    // A server that answers nobody: whoever asks it has read the log and not compared.
    let server = std::net::TcpListener::bind("127.0.0.1:0")?;
    server.set_nonblocking(true)?;
    let s3 = format!("[s3]\nendpoint = \"http://{}\"\nretry_seconds = 1\n", server.local_addr()?);
    let new = |path: &str, job: &str| -> Result<Folder> {
        let folder = Folder::new(options, &format!("{job}{s3}"))?;
        folder.good()?;
        let own = format!("dt={DT}/part-0.parquet");
        let size = std::fs::read(folder.place("part-0.parquet"))?.len();
        std::fs::create_dir(folder.path().join("documents/_delta_log"))?;
        std::fs::write(folder.path().join(FIRST_VERSION), log_of(&[(&own, size), (path, secret.len())]))?;
        Ok(folder)
    };
    let run = |folder: &Folder, more: &[&str]| {
        let args = ["run", "--config", "job.toml", "--dt", DT, "--spill-dir", "spill", "--json"];
        let run = folder.command(&args).args(more);
        run.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "of-the-job").run()
    };
    let local = format!("{outside}/secret.parquet");
    for path in [
        "s3://payroll/secret.parquet",
        "s3://payroll/a/../secret.parquet",
        "s3://payroll%2Fa/secret.parquet",
        &local,
        &format!("file://{local}"),
        &format!("../../{name}/secret.parquet"),
        &format!("%2E%2E/%2e%2e/{name}/secret.parquet"),
    ] {
        for rooted in [false, true] {
            let folder = new(path, "")?;
            let root = folder.path().display().to_string();
            let flags = ["--root", root.as_str(), "--root", "s3://crawl"];
            let done = run(&folder, if rooted { &flags } else { &[] })?;
            let unasked = || expect(server.accept().is_err(), || "a request was sent".to_owned());
            let outcome = folder.refused(&done, &[64], &["secret.parquet"]).and_then(|()| unasked());
            checks.count(&format!("{path}, rooted: {rooted}"), outcome);
        }
    }
    for job in [
        format!("clone_roots = [{outside:?}]\n"),
        format!("roots = [\".\", {outside:?}]\n"),
        format!("roots = [\".\"]\nclone_roots = [{outside:?}]\n"),
    ] {
        let folder = new(&local, &job)?;
        let done = run(&folder, &[])?;
        let both = |folder: &Folder| {
            let found = folder.decisions().map_err(|e| e.to_string())?;
            expect(found.len() == 2 && found.contains_key("secret"), || format!("decided: {found:?}"))
        };
        checks.count(job.trim_end(), ended(&done, &[0]).and_then(|()| both(&folder)));
        // Another job may not copy it.
        let narrow = std::fs::read_to_string(folder.path().join("job.toml"))?.replace(&job, "roots = [\".\"]\n");
        std::fs::write(folder.path().join("narrow.toml"), narrow)?;
        let done = folder.command(&["filter", "--config", "narrow.toml", "--dt", DT, "--output", "out"]).run()?;
        let copied = files_below(&folder.path().join("out"));
        let outcome = ended(&done, &[64]).and(expect(copied.is_empty(), || format!("written: {copied:?}")));
        checks.count("filter by another job", outcome);
    }
    Ok(())
}

fn unlisted_tables(options: &Options, checks: &mut Checks) -> Result<()> {
    let (live, removed) = (parquet_of(&[(Some("live"), Some(&text(1, 40)))])?, parquet_of(&[(Some("removed"), None)])?);
    let log = log_of(&[(&format!("dt={DT}/live.parquet"), live.len())]);
    let files = [
        (format!("documents/dt={DT}/live.parquet"), live),
        (format!("documents/dt={DT}/removed.parquet"), removed),
        (FIRST_VERSION.to_owned(), log),
    ];
    let has_documents = |done: &Ran, n: u64| {
        let found = done.summary()["n_documents"].clone();
        ended(done, &[0]).and_then(|()| expect(found == n, || format!("{found} documents, expected {n}")))
    };
    const WARNING: &str = "cannot tell whether this is a table";

    let folder = Folder::new(options, "")?;
    std::fs::create_dir(folder.path().join("documents/_delta_log"))?;
    for (path, content) in &files {
        std::fs::write(folder.path().join(path), content)?;
    }
    for (place, mode) in [("", 0o755), ("spill", 0o777), ("documents", 0o711)] {
        std::fs::set_permissions(folder.path().join(place), std::fs::Permissions::from_mode(mode))?;
    }
    let other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    if folder.command(&["--version"]).wrapped(&other).run().is_ok_and(|done| done.code == 0) {
        let places = ["--store", "spill/store", "--output", "spill/results", "--spill-dir", "spill"];
        let args = [&["run", "--config", "job.toml", "--dt", DT, "--json"][..], &places].concat();
        checks.count("mode 711", has_documents(&folder.command(&args).wrapped(&other).run()?, 1));
    } else {
        checks.note("mode 711: skipped, cannot run as another user");
    }

    let Some(server) = Server::from_env()? else {
        checks.note("S3: skipped, no server named");
        return Ok(());
    };
    let prefix = format!("unlisted-{}", std::process::id());
    for (path, content) in files {
        server.put(&format!("{prefix}/{path}"), content)?;
    }
    let proxy = Proxy::start(server.port()?, options.seed)?;
    let documents = format!("s3://{}/{prefix}/documents/dt={DT}", server.bucket);
    let job = format!("[s3]\nendpoint = \"{}\"\nretry_seconds = 2\n", proxy.endpoint());
    let folder = Folder::new(options, &job)?;
    let read = |rules: &[(&str, Action)]| -> Result<Ran> {
        let of_list = |name: &str| format!("^GET [^?]*[?].*prefix=[^&]*documents%2F{name}(&|$)");
        let rules = rules.iter().map(|(name, action)| Rule::new(&of_list(name), action.clone()));
        proxy.set(rules.collect::<Result<_>>()?, options.seed);
        let args = ["fingerprint", "--config", "job.toml", "--documents", &documents, "--output", "out", "--replace"];
        folder.command(&args).args(&["--json"]).run()
    };
    let status = |status, code| Action::Status { status, code };
    let forbidden = || status(403, "AccessDenied");
    let done = read(&[("", forbidden())])?;
    checks.count("LIST of the table forbidden", has_documents(&done, 1));
    let done = read(&[("", forbidden()), ("(_delta_log|[.]hoodie|metadata)%2F", forbidden())])?;
    let warned = done.stderr.matches(WARNING).count();
    let outcome = has_documents(&done, 2).and(expect(warned == 1, || format!("{warned} warnings")));
    checks.count("LIST of all names forbidden", outcome);
    let done = read(&[("_delta_log%2F", status(503, "SlowDown"))])?;
    checks.count("LIST of the log fails", ended(&done, &[69]));
    for name in server.read_all(&prefix)?.keys() {
        server.delete(&format!("{prefix}/{name}"))?;
    }
    Ok(())
}

/// Scripts that would show themselves in the page's title or by an attribute of the root.
fn scripts() -> Vec<String> {
    const DO: &str = "document.title='PWNED'";
    let act = |before: &str, after: &str| format!("{before}{DO}{after}");
    let mut all = vec![
        act("<script>", "</script>"),
        act("<ScRiPt >", "</ScRiPt>"),
        act("</script><script>", "</script>"),
        act("</style><script>", "</script>"),
        act("</title><script>", "</script>"),
        act("</textarea><script>", "</script>"),
        act("--><script>", "</script>"),
        act("]]><script>", "</script>"),
        act("\"><script>", "</script>"),
        act("'><script>", "</script>"),
        act("`><script>", "</script>"),
        act("<img src=x onerror=\"", "\">"),
        act("<img src=x onerror=", ">"),
        act("\" onmouseover=\"", "\" autofocus onfocus=\"document.title='PWNED'"),
        act("<svg onload=\"", "\">"),
        act("<svg><script>", "</script></svg>"),
        act("<svg/onload=", ">"),
        act("<body onload=\"", "\">"),
        act("<details open ontoggle=\"", "\">"),
        act("<input autofocus onfocus=\"", "\">"),
        act("<video><source onerror=\"", "\"></video>"),
        act("<audio src=x onerror=\"", "\">"),
        act("<iframe srcdoc=\"<script>parent.", "</script>\">"),
        act("<iframe src=\"javascript:parent.", "\">"),
        act("<object data=\"data:text/html,<script>", "</script>\">"),
        act("<embed src=\"javascript:", "\">"),
        act("<a href=\"javascript:", "\" id=x>x</a>"),
        act("<form action=\"javascript:", "\"><button>"),
        act("<meta http-equiv=refresh content=\"0;url=javascript:", "\">"),
        act("<base href=\"javascript:", "//\">"),
        act("<link rel=stylesheet onerror=\"", "\" href=x>"),
        act("<style onload=\"", "\"></style>"),
        act("<marquee onstart=\"", "\">"),
        act("<select autofocus onfocus=\"", "\">"),
        act("<keygen autofocus onfocus=\"", "\">"),
        act("<math><mtext><script>", "</script>"),
        act("<template><script>", "</script></template><script>document.title='PWNED'</script>"),
        act("<noscript><p title=\"</noscript><script>", "</script>\">"),
        act("&lt;script&gt;", "&lt;/script&gt;"),
        act("&#60;script&#62;", "&#60;/script&#62;"),
        act("\u{ff1c}script\u{ff1e}", "\u{ff1c}/script\u{ff1e}"),
        act("<scr\0ipt>", "</scr\0ipt>"),
        act("<script\n>", "</script\n>"),
        act("<<script>", "//<</script>"),
        act("<script src=\"data:,", "\"></script>"),
        act("{{constructor.constructor('", "')()}}"),
        act("${", "}"),
        act("+ADw-script+AD4-", "+ADw-/script+AD4-"),
        act("\u{1b}]0;<script>", "</script>\u{7}"),
        act("<x style=\"animation-name:x\" onanimationstart=\"", "\">"),
    ];
    all.truncate(50);
    all
}

fn chromium() -> Option<&'static str> {
    let there = |name: &&&str| {
        Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    };
    ["chromium", "chromium-browser", "google-chrome"].iter().find(there).copied()
}

/// Returns a page as it is after its scripts had their chance.
fn rendered(browser: &str, page: &Path, profile: &Path) -> Result<String> {
    let output = Command::new("timeout")
        .args([
            "-s",
            "KILL",
            "60",
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=3000",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .stderr(Stdio::null())
        .output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn executed(dom: &str) -> bool {
    dom.contains("<title>PWNED")
}

fn scripts_in_reports(options: &Options, checks: &mut Checks) -> Result<()> {
    let Some(browser) = chromium() else {
        checks.note("skipped: no chromium");
        return Ok(());
    };
    let folder = Folder::new(options, "")?;
    let scripts = scripts();
    let (mut rows, mut truth) = (Vec::new(), String::from("id_a\tid_b\tlabel\n"));
    for (i, script) in (0..).zip(&scripts) {
        let body = format!("{script} {} {script}", text(i, 80));
        rows.push((format!("{script} a{i}"), body.clone()));
        rows.push((format!("{script} b{i}"), format!("{body} {script} and")));
        truth.push_str(&format!("plain{i}a\tplain{i}b\tpos\n"));
    }
    let documents: Vec<_> = rows.iter().map(|(id, text)| (Some(id.as_str()), Some(text.as_str()))).collect();
    folder.put("part-0.parquet", &parquet_of(&documents)?)?;
    let args = [
        "tune",
        "--documents",
        "documents",
        "--sheet",
        "s.csv",
        "--html",
        "p.html",
        "--per-distance",
        "200",
        "--max-distance",
        "12",
        "--json",
    ];
    let done = folder.command(&args).run()?;
    checks.count("tune", ended(&done, &[0]));
    let page = folder.path().join("p.html");
    let content = std::fs::read_to_string(&page)?;
    let profile = options.scratch()?;
    let control = folder.path().join("control.html");
    for script in scripts.iter().filter(|s| s.starts_with("<script>")) {
        std::fs::write(&control, format!("<html><title>t</title><body>{script}</body></html>"))?;
        let dom = rendered(browser, &control, profile.path())?;
        checks.count("the browser executes a raw script", expect(executed(&dom), || shortened(&dom, 200)));
    }
    let dom = rendered(browser, &page, profile.path())?;
    let shown = scripts.len() as u64;
    let names = (0..shown)
        .filter(|i| {
            dom.contains(&format!(" a{i}<")) || dom.contains(&format!(" b{i}<")) || dom.contains(&format!(" a{i}"))
        })
        .count();
    checks.count("ids are on the page", expect(names > 40, || format!("{names} of {shown}")));
    checks.count(
        "the page",
        expect(!executed(&dom) && dom.len() > 10_000, || "a script ran, or there is no page".to_owned()),
    );
    let policy = content.contains("Content-Security-Policy") && content.contains("default-src 'none'");
    checks.count("its policy", expect(policy, || "no Content-Security-Policy with default-src 'none'".to_owned()));
    let without_policy = folder.path().join("without.html");
    std::fs::write(&without_policy, content.replace("Content-Security-Policy", "X-None"))?;
    let dom = rendered(browser, &without_policy, profile.path())?;
    checks.count(
        "the page without its policy",
        expect(!executed(&dom) && dom.len() > 10_000, || "a script ran".to_owned()),
    );
    checks.note(format!(
        "{} scripts on {} pairs; {} KB of page",
        scripts.len(),
        done.summary()["n_sampled"],
        content.len() / 1000
    ));
    plot(options, checks, browser, &profile)
}

/// The plot of `evaluate`, whose title names the documents.
fn plot(options: &Options, checks: &mut Checks, browser: &str, profile: &tempfile::TempDir) -> Result<()> {
    let folder = Folder::new(options, "")?;
    let name = "<svg onload=document.title='PWNED'>.jsonl";
    let mut lines = String::new();
    for i in 0..20_u64 {
        lines
            .push_str(&serde_json::json!({"id": format!("<script>{i}</script>"), "text": text(i / 2, 60)}).to_string());
        lines.push('\n');
    }
    std::fs::write(folder.path().join(name), lines)?;
    let mut truth = String::from("id_a\tid_b\tlabel\n");
    for i in (0..20).step_by(2) {
        truth.push_str(&format!("<script>{i}</script>\t<script>{}</script>\tpos\n", i + 1));
    }
    std::fs::write(folder.path().join("truth.tsv"), truth)?;
    let args = ["evaluate", "--documents", name, "--truth", "truth.tsv", "--plot", "plot.svg", "--json"];
    let done = folder.command(&args).run()?;
    checks.count("evaluate", ended(&done, &[0]));
    let svg = std::fs::read_to_string(folder.path().join("plot.svg"))?;
    let page = folder.path().join("plot.html");
    std::fs::write(&page, format!("<html><title>t</title><body>{svg}</body></html>"))?;
    let dom = rendered(browser, &page, profile.path())?;
    checks.count(
        "the plot",
        expect(!executed(&dom) && dom.contains("<svg"), || "a script ran, or there is no plot".to_owned()),
    );
    Ok(())
}

/// Characters that a terminal acts on, or that reorder what is read.
fn acts(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn said_plainly(done: &Ran) -> Outcome {
    for (stream, text) in [("stdout", &done.stdout), ("stderr", &done.stderr)] {
        // JSON is for programs: ids stand in it as they are, less control characters.
        let found = text.split('\n').find_map(|line| {
            let json = line.starts_with('{');
            line.chars().find(|&c| acts(c) && (!json || c.is_control())).map(|c| (line, c))
        });
        if let Some((line, c)) = found {
            return Err(format!(
                "{} on {stream}: {}",
                c.escape_unicode(),
                shortened(&line.escape_debug().to_string(), 160)
            ));
        }
    }
    expect(!done.stdout.is_empty() || !done.stderr.is_empty(), || "nothing was said".to_owned())
}

fn terminal_escapes(options: &Options, checks: &mut Checks) -> Result<()> {
    let escapes = [
        "\u{1b}[31mred\u{1b}[0m",
        "\u{1b}]0;title\u{7}",
        "\u{9b}2J",
        "bell\u{7}",
        "back\u{8}\u{8}\u{8}",
        "over\rwritten",
        "\u{202e}rtl",
        "\u{7f}del",
        "\u{1b}P\u{1b}\\",
    ];
    let same = text(1, 60);
    let rows: Vec<(String, String)> = (0..)
        .zip(escapes)
        .flat_map(|(i, e)| {
            let body = format!("{same} {e} {}", text(100 + i, 3));
            [(format!("{e}{i}a"), body.clone()), (format!("{e}{i}b"), body)]
        })
        .collect();
    let documents: Vec<_> = rows.iter().map(|(id, text)| (Some(id.as_str()), Some(text.as_str()))).collect();
    let content = parquet_of(&documents)?;
    let folder = Folder::new(options, "")?;
    folder.put("part-0.parquet", &content)?;
    let run = ["run", "--config", "job.toml", "--dt", DT, "--spill-dir", "spill", "-vv"];
    let commands: [&[&str]; 7] = [
        &run,
        &["report", "--config", "job.toml", "--dt", DT, "--examples", "50"],
        &["report", "--config", "job.toml", "--dt", DT, "--examples", "50", "--json"],
        &["explain", &rows[0].0, &rows[2].0, "--documents", "documents"],
        &["explain", &rows[0].0, &rows[2].0, "--documents", "documents", "--json"],
        &["explain", "--text", &rows[0].1, "--text", &rows[2].1],
        &["explain", "no\u{1b}[31msuch", &rows[2].0, "--documents", "documents"],
    ];
    for args in commands {
        let done = folder.command(args).run()?;
        checks.count(args[0], ended(&done, &[0, 66]).and(said_plainly(&done)));
    }
    for (what, name, content) in [
        ("repeated ids", "twice.parquet", content),
        (
            "a column's name",
            "column.parquet",
            parquet_with(
                &[("\u{1b}[31mid", strings(&[Some("a")]))],
                parquet::file::properties::WriterProperties::default(),
            )?,
        ),
        ("a file's name", "\u{1b}[31mred.parquet", b"no Parquet".to_vec()),
        ("a line", "line.jsonl", "\u{1b}[31m not JSON\n".as_bytes().to_vec()),
        ("a key of a line", "key.jsonl", "{\"\u{1b}[31mkey\": 1}\n".as_bytes().to_vec()),
    ] {
        for more in [&[][..], &["-vv"][..]] {
            let folder = Folder::new(options, "")?;
            folder.put("part-0.parquet", &parquet_of(&documents)?)?;
            folder.put(name, &content)?;
            let done = folder.run(more)?;
            checks.count(what, ended(&done, &[65, 78]).and(said_plainly(&done)));
        }
    }
    Ok(())
}

fn formulas(options: &Options, checks: &mut Checks) -> Result<()> {
    let starts = [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "=cmd|'/c calc'!A0",
        "\t=1",
        "\r=1",
        " =1",
        "\"=1\"",
        "=HYPERLINK(\"http://x\")",
        "\u{ff1d}1",
    ];
    let rows: Vec<(String, String)> = (0..)
        .zip(starts)
        .flat_map(|(i, s)| {
            let body = format!("{s} {}", text(i, 80));
            [(format!("{s}{i}a"), body.clone()), (format!("{s}{i}b"), format!("{body} more"))]
        })
        .collect();
    let documents: Vec<_> = rows.iter().map(|(id, text)| (Some(id.as_str()), Some(text.as_str()))).collect();
    let folder = Folder::new(options, "")?;
    folder.put("part-0.parquet", &parquet_of(&documents)?)?;
    let args = ["tune", "--documents", "documents", "--sheet", "s.csv", "--per-distance", "200", "--json"];
    let done = folder.command(&args).run()?;
    checks.count("tune", ended(&done, &[0]));
    let mut n_cells = 0;
    for record in
        csv::ReaderBuilder::new().has_headers(true).flexible(true).from_path(folder.path().join("s.csv"))?.records()
    {
        for cell in &record? {
            n_cells += 1;
            let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
            checks.count("a cell", expect(!formula, || format!("{:?}", shortened(cell, 60))));
        }
    }
    checks.count("cells", expect(n_cells > 60, || format!("only {n_cells}")));
    Ok(())
}

fn injection(options: &Options, checks: &mut Checks) -> Result<()> {
    let elsewhere = options.scratch()?;
    std::fs::create_dir_all(elsewhere.path().join(format!("dt={DT}")))?;
    std::fs::write(
        elsewhere.path().join(format!("dt={DT}/part-0.parquet")),
        parquet_of(&[(Some("expanded"), Some(&text(1, 40)))])?,
    )?;
    for written in [
        "${TRIAL_DIR}",
        "$TRIAL_DIR",
        "%TRIAL_DIR%",
        "{env.TRIAL_DIR}",
        "{{ env.TRIAL_DIR }}",
        "$(printenv TRIAL_DIR)",
        "~+",
    ] {
        let folder = Folder::new(options, "")?;
        std::fs::write(
            folder.path().join("job.toml"),
            format!("documents = \"{written}\"\nstore = \"store\"\noutput = \"results\"\ncreate_store = true\n"),
        )?;
        let args = ["run", "--config", "job.toml", "--dt", DT, "--spill-dir", "spill", "--json"];
        let done = folder.command(&args).env("TRIAL_DIR", &elsewhere.path().display().to_string()).run()?;
        checks.count(written, folder.refused(&done, &[64, 66, 78], &[]));
    }
    for name in ["i\"d", "i'd; DROP TABLE documents; --", "a.b", "a b", "*", "SELECT", "`id`", "\u{5b57}", "id)", "$1"]
    {
        let folder = Folder::new(
            options,
            &format!("id_column = {name:?}\ntext_column = {:?}\nkeep = [\"{}\"]\n", format!("{name} text"), "n desc"),
        )?;
        let number: arrow::array::ArrayRef = std::sync::Arc::new(arrow::array::Int64Array::from(vec![1]));
        let columns = [
            (name, strings(&[Some("good")])),
            (&format!("{name} text"), strings(&[Some(&text(1, 40))])),
            ("n", number),
        ];
        folder
            .put("part-0.parquet", &parquet_with(&columns, parquet::file::properties::WriterProperties::default())?)?;
        let done = folder.run(&[])?;
        checks.count(name, folder.published_soundly(&done, &[]).map(drop));
    }
    Ok(())
}

fn temporary_modes(options: &Options, checks: &mut Checks) -> Result<()> {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        checks.note("skipped: no strace");
        return Ok(());
    }
    let folder = Folder::new(options, "")?;
    // All alike in the leading bits of their fingerprints, so that the reduce has something to spill.
    let base: Vec<String> = text(1, 200).split(' ').map(str::to_owned).collect();
    let rows: Vec<(String, String)> = (0..900_usize)
        .map(|i| {
            let mut words = base.clone();
            words[i % 200] = format!("x{i}");
            (format!("d{i}"), words.join(" "))
        })
        .collect();
    let documents: Vec<_> = rows.iter().map(|(id, text)| (Some(id.as_str()), Some(text.as_str()))).collect();
    folder.put("part-0.parquet", &parquet_of(&documents)?)?;
    let script = "umask 000; exec strace -f -qq -e trace=open,openat,creat,mkdir,mkdirat,chmod,fchmod,fchmodat -o trace.txt \"$@\"";
    let nearprint = options.nearprint()?;
    let output = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(&nearprint)
        .args([
            "run",
            "--config",
            "job.toml",
            "--dt",
            DT,
            "--spill-dir",
            "spill",
            "--pairs",
            "all",
            "--reduce-memory",
            "48MiB",
            "--json",
        ])
        .current_dir(folder.path())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    checks
        .count("the run", expect(output.status.success(), || shortened(said.lines().last().unwrap_or_default(), 200)));
    let trace = std::fs::read_to_string(folder.path().join("trace.txt"))?;
    let (mut folders, mut files) = (0, 0);
    let is_temporary = |call: &&String| call.contains("spill/nearprint-") || call.contains("spill/.nearprint-");
    for call in whole_calls(&trace).iter().filter(is_temporary) {
        let mode = mode_of(call);
        if call.starts_with("mkdir") {
            // What lies below a folder of 0700 is out of reach whatever its mode is.
            let below = call.split("nearprint-").nth(1).is_some_and(|rest| rest.contains('/'));
            folders += 1;
            checks.count("a folder", expect(below || mode == Some(0o700), || shortened(call, 160)));
        } else if call.contains("O_CREAT") {
            files += 1;
            checks.count("a file", expect(mode == Some(0o600), || shortened(call, 160)));
        }
    }
    checks.note(format!("{folders} folders, {files} files"));
    checks
        .count("something was seen", expect(folders > 0 && files > 0, || "no temporary file in the trace".to_owned()));
    Ok(())
}

/// The calls of a trace of `strace -f -o`, without the number of the thread, each whole. Where another thread's call comes
/// between, strace writes the beginning and the end of a call in two lines.
fn whole_calls(trace: &str) -> Vec<String> {
    let mut begun: BTreeMap<&str, &str> = BTreeMap::new();
    let mut calls = Vec::new();
    for (thread, call) in trace.lines().filter_map(|line| line.split_once(' ')) {
        let call = call.trim_start();
        if let Some(beginning) = call.strip_suffix("<unfinished ...>") {
            begun.insert(thread, beginning.trim_end());
        } else if let Some((_, end)) = call.strip_prefix("<... ").and_then(|call| call.split_once("resumed>")) {
            // Of a thread that ended within the call, the end is ` <unfinished ...>) = ?`.
            let end = end.trim_start().trim_start_matches("<unfinished ...>");
            calls.extend(begun.remove(thread).map(|beginning| format!("{beginning}{end}")));
        } else {
            calls.push(call.to_owned());
        }
    }
    // strace prints all arguments of these calls before they return, so that a call without an end says what it was for.
    calls.extend(begun.into_values().map(|beginning| format!("{beginning}) = ?")));
    calls
}

/// The last argument of a call, as the mode of a file.
fn mode_of(call: &str) -> Option<u32> {
    let (call, _) = call.rsplit_once(" = ")?;
    let (_, mode) = call.trim_end().strip_suffix(')')?.rsplit_once(", ")?;
    u32::from_str_radix(mode, 8).ok()
}

fn locks_and_stale_folders(options: &Options, checks: &mut Checks) -> Result<()> {
    let folder = Folder::new(options, "")?;
    folder.good()?;
    let victim = folder.path().join("victim");
    std::fs::write(&victim, "somebody's")?;
    symlink(&victim, folder.path().join("link-to-victim"))?;
    let done = folder.run(&["--lock-file", "link-to-victim"])?;
    let untouched = expect(std::fs::read(&victim)? == b"somebody's", || "the target changed".to_owned());
    checks.count(
        "a symlink as lock file",
        folder.refused(&done, &[64, 74, 75, 77, 78], &["link-to-victim"]).and(untouched),
    );
    let missing = folder.path().join("missing");
    symlink(&missing, folder.path().join("dangling"))?;
    let done = folder.run(&["--lock-file", "dangling"])?;
    let not_made = expect(!missing.exists(), || "its target was made".to_owned());
    checks.count(
        "a dangling symlink as lock file",
        folder.refused(&done, &[64, 74, 75, 77, 78], &["dangling"]).and(not_made),
    );
    let held = folder.path().join("held");
    std::fs::write(&held, "")?;
    let mut holder = Command::new("flock").arg(&held).args(["sleep", "30"]).spawn()?;
    std::thread::sleep(Duration::from_millis(300));
    let done = folder.run(&["--lock-file", "held"])?;
    checks.count("a lock that is held", folder.refused(&done, &[75], &["held"]));
    holder.kill()?;
    holder.wait()?;
    let done = folder.run(&["--lock-file", "ordinary"])?;
    checks.count("an ordinary lock file", ended(&done, &[0]));

    let folder = Folder::new(options, "")?;
    folder.good()?;
    let stale = folder.path().join("spill/nearprint-Ab12Cd");
    std::fs::create_dir(&stale)?;
    std::fs::write(stale.join("part"), "theirs")?;
    std::fs::set_permissions(&stale, std::fs::Permissions::from_mode(0o777))?;
    if let Err(error) = std::os::unix::fs::chown(&stale, Some(65_534), Some(65_534)) {
        checks.note(format!("a folder of another user: skipped, {error}"));
        return Ok(());
    }
    let done = folder.run(&[])?;
    checks.count(
        "a stale folder of another user",
        ended(&done, &[0]).and(expect(stale.join("part").exists(), || "it was removed".to_owned())),
    );
    Ok(())
}

fn endpoints(options: &Options, checks: &mut Checks) -> Result<()> {
    let run = |endpoint: &str, lines: &str, env: &[(&str, &str)]| -> Result<(Folder, Ran)> {
        let job = format!("[s3]\nendpoint = \"{endpoint}\"\nretry_seconds = 1\n{lines}");
        let folder = Folder::new(options, &job)?;
        folder.good()?;
        let args = [
            "run",
            "--config",
            "job.toml",
            "--dt",
            DT,
            "--spill-dir",
            "spill",
            "--json",
            "--store",
            "s3://bucket/store",
        ];
        let call = folder.command(&args).env("AWS_ACCESS_KEY_ID", "k").env("AWS_SECRET_ACCESS_KEY", "s");
        let done = env.iter().fold(call, |call, (name, value)| call.env(name, value)).run()?;
        Ok((folder, done))
    };
    // 192.0.2.0/24 is for documentation: nobody answers there.
    for endpoint in [
        "http://192.0.2.1:9000",
        "HTTP://192.0.2.1",
        "http://localhost.example.com:80",
        "http://127.0.0.1.example.com",
        "http://127.0.0.1@192.0.2.1/",
    ] {
        for env in [&[][..], &[("AWS_ALLOW_HTTP", "true")][..]] {
            let (folder, done) = run(endpoint, "", env)?;
            checks.count(&format!("{endpoint}, {env:?}"), folder.refused(&done, &[78], &["endpoint"]));
        }
    }
    for endpoint in ["http://127.0.0.1:9", "http://[::1]:9", "http://localhost:9"] {
        let (folder, done) = run(endpoint, "", &[])?;
        checks.count(endpoint, folder.refused(&done, &[69], &[]));
    }
    let (folder, done) = run("http://localhost.invalid:9", "allow_http = true\n", &[])?;
    checks.count("allow_http", folder.refused(&done, &[69], &[]));
    for endpoint in ["ftp://127.0.0.1", "127.0.0.1:9000", "file:///tmp", "", "http://"] {
        let (folder, done) = run(endpoint, "", &[])?;
        checks.count(&format!("'{endpoint}'"), folder.refused(&done, &[78], &["endpoint"]));
    }
    bad_certificate(options, checks, run)
}

fn bad_certificate(
    options: &Options,
    checks: &mut Checks,
    run: impl Fn(&str, &str, &[(&str, &str)]) -> Result<(Folder, Ran)>,
) -> Result<()> {
    let keys = options.scratch()?;
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=127.0.0.1",
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
        ])
        .current_dir(keys.path())
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .status();
    if !made.is_ok_and(|s| s.success()) {
        checks.note("a self-signed certificate: skipped, no openssl");
        return Ok(());
    }
    let port = { std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port() };
    let mut server = Command::new("openssl")
        .args(["s_server", "-quiet", "-www", "-key", "key.pem", "-cert", "cert.pem", "-accept", &port.to_string()])
        .current_dir(keys.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    std::thread::sleep(Duration::from_millis(500));
    for env in [&[][..], &[("AWS_ALLOW_INVALID_CERTIFICATES", "true"), ("AWS_ALLOW_HTTP", "true")][..]] {
        let (folder, done) = run(&format!("https://127.0.0.1:{port}"), "", env)?;
        let outcome = folder.refused(&done, &[69, 77, 78], &[]).and_then(|()| {
            let error = done.error().to_lowercase();
            expect(["certificate", "issuer", "tls"].iter().any(|w| error.contains(w)), || {
                format!("the certificate is not named: {}", done.said())
            })
        });
        checks.count("a self-signed certificate", outcome);
    }
    server.kill()?;
    server.wait()?;
    Ok(())
}

fn crafted_ids(options: &Options, checks: &mut Checks) -> Result<()> {
    let n = options.scaled(100_000);
    let seconds = |make: &dyn Fn(u64) -> String| -> Result<(f64, Ran)> {
        let folder = Folder::new(options, "")?;
        let ids: Vec<String> = (0..n).map(make).collect();
        let texts: Vec<String> = (0..n).map(|i| text(i % 1000, 20)).collect();
        let rows: Vec<_> = ids.iter().zip(&texts).map(|(id, text)| (Some(id.as_str()), Some(text.as_str()))).collect();
        folder.put("part-0.parquet", &parquet_of(&rows)?)?;
        let done = folder.run(&[])?;
        Ok((done.seconds, done))
    };
    let whole = |done: &Ran| {
        let found = &done.summary()["n_documents"];
        ended(done, &[0]).and(expect(found.as_u64() == Some(n), || format!("n_documents is {found}, expected {n}")))
    };
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let random: Vec<String> = (0..n).map(|_| format!("{:020}", rng.u64(..))).collect();
    let (usual, done) = seconds(&|i| random[usize::try_from(i).unwrap_or_default()].clone())?;
    checks.count("random", whole(&done));
    let zeros = "0".repeat(300);
    type Make<'a> = &'a dyn Fn(u64) -> String;
    let crafted: [(&str, Make<'_>); 5] = [
        ("multiples of 2^32", &|i| (i << 32).to_string()),
        ("little-endian counters", &|i| {
            i.to_le_bytes().iter().map(|b| char::from(b & 0x7f)).collect::<String>() + &i.to_string()
        }),
        ("one long prefix", &|i| format!("{zeros}{i}")),
        ("one long suffix", &|i| format!("{i}{zeros}")),
        ("bits in 17 letters", &|i| (0..17).map(|b| if i >> b & 1 == 1 { 'A' } else { 'a' }).collect()),
    ];
    let mut figures = BTreeMap::new();
    for (what, make) in crafted {
        let (seconds, done) = seconds(make)?;
        figures.insert(what, seconds);
        checks.count(
            what,
            whole(&done).and(expect(seconds < usual * 3.0 + 1.0, || format!("{seconds:.1} s, random {usual:.1} s"))),
        );
    }
    let all: Vec<_> = figures.iter().map(|(what, s)| format!("{what} {s:.1} s")).collect();
    checks.note(format!("random {usual:.1} s, {}", all.join(", ")));
    Ok(())
}

fn supply_chain(_options: &Options, checks: &mut Checks) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let lock = std::fs::read_to_string(root.join("Cargo.lock"))?;
    let mut n_packages = 0;
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            package.lines().find_map(|l| l.strip_prefix(key)).unwrap_or_default().trim_matches('"').to_owned()
        };
        let name = value("name = ");
        n_packages += 1;
        let own = name.starts_with("nearprint-");
        let registry = value("source = ") == "registry+https://github.com/rust-lang/crates.io-index"
            && value("checksum = ").len() == 64;
        checks.count(&name, expect(own || registry, || "not from the registry with a checksum".to_owned()));
    }
    checks.note(format!("{n_packages} packages"));
    let there = Command::new("cargo").args(["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !there.is_ok_and(|s| s.success()) {
        checks.note("advisories and licences: skipped, no cargo-deny");
        return Ok(());
    }
    let output = Command::new("cargo")
        .args(["deny", "check", "advisories", "bans", "licenses", "sources"])
        .current_dir(&root)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    checks.count(
        "cargo deny",
        expect(output.status.success(), || shortened(said.lines().last().unwrap_or_default(), 200)),
    );
    Ok(())
}

/// The flags that name a file beside the results, with what else their commands need, and the ending that they ask for.
const BESIDE: [(&[&str], &str, &str); 8] = [
    (&["store", "info"], "--summary-file", "json"),
    (&["run", "--dt", DT], "--summary-file", "json"),
    (&["run", "--dt", DT], "--metrics-file", "prom"),
    (&["run", "--dt", DT], "--report", "html"),
    (&["report", "--dt", DT], "--html", "html"),
    (&["tune", "--documents", "documents", "--replace"], "--sheet", "csv"),
    (&["evaluate", "--documents", "documents", "--truth", "truth.tsv", "--replace"], "--plot", "svg"),
    (&["idf", "build", "--documents", "documents", "--replace"], "--output", ""),
];

fn files_aimed_at_data(options: &Options, checks: &mut Checks) -> Result<()> {
    let folder = Folder::new(options, "")?;
    folder.good()?;
    std::fs::write(folder.path().join("truth.tsv"), "id_a\tid_b\tlabel\n")?;
    let done = folder.run(&[])?;
    checks.count("the night", folder.published_soundly(&done, &[]).map(drop));
    let before = snapshot_of(folder.path(), &[""])?;
    let is_data = |key: &&String| ["store/", "results/", "documents/"].iter().any(|place| key.starts_with(place));
    let targets: Vec<&String> = before.keys().filter(is_data).collect();
    for (command, flag, ending) in BESIDE {
        let has_ending = |key: &str| ending.is_empty() || key.ends_with(&format!(".{ending}"));
        // A free name beside each file, and the file itself where it has the ending of the flag.
        let free = |key: &str| Some(format!("{}/free.{ending}", key.rsplit_once('/')?.0));
        let mut aims: BTreeSet<String> = targets.iter().filter_map(|key| free(key)).collect();
        aims.extend(targets.iter().filter(|key| has_ending(key)).map(|key| (*key).clone()));
        let link = format!("link.{ending}");
        symlink(folder.path().join("store/_commits/00000001.json"), folder.path().join(&link))?;
        aims.insert(link.clone());
        for aim in &aims {
            let whole = folder.path().join(aim).display().to_string();
            for place in [aim.as_str(), &whole, &format!("store/../{aim}")] {
                let done = folder.command(command).args(&["--config", "job.toml", flag, place]).run()?;
                let named = done.stderr.contains(flag) && done.stderr.contains(place);
                let outcome = ended(&done, &[64, 73]).and(expect(named, || format!("not named: {}", done.stderr)));
                checks.count(&format!("{} {flag} {place}", command.join(" ")), outcome);
            }
        }
        std::fs::remove_file(folder.path().join(link))?;
    }
    let now = snapshot_of(folder.path(), &[""])?;
    let all = before.keys().chain(now.keys());
    let changed: Vec<&String> = all.filter(|key| before.get(*key) != now.get(*key)).collect();
    checks.count("bytes", expect(changed.is_empty(), || format!("changed: {changed:?}")));
    Ok(())
}

fn mistyped_year(options: &Options, checks: &mut Checks) -> Result<()> {
    const NIGHTS: [&str; 3] = ["2026-11-18", "2026-11-19", DT];
    const MISTYPED: &str = "2062-11-20";
    let folder = Folder::new(options, "keep_nights = 3\n")?;
    for (seed, dt) in (0..).zip(NIGHTS.iter().chain(&[MISTYPED])) {
        let page = parquet_of(&[(Some("page"), Some(&text(seed, 40)))])?;
        let place = folder.path().join(format!("documents/dt={dt}/part-0.parquet"));
        std::fs::create_dir_all(place.parent().ok_or("no folder")?)?;
        std::fs::write(place, page)?;
    }
    let run = |dt: &str, more: &[&str]| {
        folder.command(&["run", "--config", "job.toml", "--dt", dt, "--spill-dir", "spill", "--json"]).args(more).run()
    };
    for dt in NIGHTS {
        checks.count(dt, ended(&run(dt, &[])?, &[0]));
    }
    let data = || snapshot_of(folder.path(), &["store", "results"]);
    let before = data()?;
    for more in [&[][..], &["--dry-run"], &["--late"], &["--no-breakers"]] {
        let done = run(MISTYPED, more)?;
        let outcome = ended(&done, &[64]).and(expect(done.stderr.contains("--future"), || done.stderr.clone()));
        checks.count(&format!("{MISTYPED} {}", more.join(" ")), outcome);
    }
    checks.count("bytes", expect(data()? == before, || "something was written".to_owned()));
    let nights = || -> Result<Vec<String>> {
        let info = folder.command(&["store", "info", "--config", "job.toml", "--json"]).run()?.summary();
        let nights = info["nights"].as_array().cloned().unwrap_or_default();
        Ok(nights.iter().filter_map(|night| Some(night["dt"].as_str()?.to_owned())).collect())
    };
    let done = run(MISTYPED, &["--future"])?;
    let forgotten = done.summary()["forgotten"].as_array().map_or(0, Vec::len);
    let kept = expect(forgotten == 0, || format!("{forgotten} nights were forgotten"));
    checks.count("--future", ended(&done, &[0]).and(kept));
    let all = nights()?;
    checks.count("nights", expect(all[..] == [NIGHTS[0], NIGHTS[1], NIGHTS[2], MISTYPED], || format!("{all:?}")));
    let dropped = folder.command(&["store", "drop-night", "--config", "job.toml", "--dt", MISTYPED]).run()?;
    checks.count("drop-night", ended(&dropped, &[0]));
    let left = nights()?;
    checks.count("nights after it", expect(left == NIGHTS, || format!("{left:?}")));
    let again = run(NIGHTS[0], &["--late"])?;
    let is_there = expect(again.summary()["status"] == "already_published", || again.said());
    checks.count("a rerun of the oldest", is_there);
    Ok(())
}

/// Strangers that ask for the health again and again on one connection, and open another one when that has ended.
fn stranger(serving: &Serving, is_over: &AtomicBool) {
    const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    while !is_over.load(Ordering::Relaxed) {
        let Ok(mut stream) = serving.connect() else { continue };
        while !is_over.load(Ordering::Relaxed)
            && stream.write_all(HEALTH).is_ok()
            && stream.read(&mut [0; 4096]).is_ok_and(|n| n > 0)
        {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
}

fn strangers(options: &Options, checks: &mut Checks) -> Result<()> {
    const N: usize = 330;
    const TOKEN: &str = "0123456789abcdef";
    let folder = Folder::new(options, "")?;
    folder.good()?;
    let done = folder.run(&[])?;
    checks.count("the night", folder.published_soundly(&done, &[]).map(drop));
    std::fs::write(folder.path().join("token"), TOKEN)?;
    let args = ["serve", "--config", "job.toml", "--json", "--listen", "127.0.0.1:0", "--token-file", "token"];
    let serving = Serving::start(&folder.command(&args).timeout(600))?;
    let body = serde_json::json!({ "text": text(1, 60) }).to_string();
    let head = format!("POST /query HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close");
    let length = body.len();
    let request = format!("{head}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
    let is_over = AtomicBool::new(false);
    let mut waited = Vec::new();
    std::thread::scope(|scope| -> Result<()> {
        let asking = scope.spawn(|| {
            std::thread::scope(|scope| {
                for _ in 0..N {
                    scope.spawn(|| stranger(&serving, &is_over));
                }
            });
        });
        let silent: Vec<_> = (0..N).filter_map(|_| serving.connect().ok()).collect();
        for _ in 0..options.scaled(200).max(20) {
            let started = Instant::now();
            let outcome = serving.send(&request).map_err(|error| error.to_string());
            waited.push(started.elapsed());
            let status = outcome.map(|(status, _)| status);
            let in_time = expect(started.elapsed() < Duration::from_secs(1), || format!("{:?}", started.elapsed()));
            checks.count("an answer", expect(status == Ok(200), || format!("{status:?}")).and(in_time));
            std::thread::sleep(Duration::from_millis(20));
        }
        is_over.store(true, Ordering::Relaxed);
        drop(silent);
        asking.join().map_err(|_| "a stranger panicked")?;
        Ok(())
    })?;
    waited.sort();
    let middle = waited[waited.len() / 2];
    let last = waited.last().copied().unwrap_or_default();
    checks.note(format!("{} asked; median {middle:.1?}, longest {last:.1?}", waited.len()));
    let done = serving.stop(Signal::SIGTERM)?;
    checks.count("the end", expect(done.code == 143, || done.said()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{mode_of, whole_calls};

    #[test]
    fn a_call_that_strace_wrote_in_two_lines_is_read_as_one() {
        let trace = "\
71  mkdir(\"/spill/nearprint-x\", 0700 <unfinished ...>
72  openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY|O_CLOEXEC) = 3
73  openat(AT_FDCWD, \"/spill/nearprint-x/a\", O_RDWR|O_CREAT|O_EXCL, 0600 <unfinished ...>
71  <... mkdir resumed>)                    = 0
72  --- SIGCHLD {si_signo=SIGCHLD} ---
73  <... openat resumed>)       = -1 EEXIST (File exists)
71  openat(AT_FDCWD, \"b\", O_RDWR|O_CREAT, 0644)    = 4
74  mkdir(\"c\", 0755 <unfinished ...>
73  mkdir(\"d\", 0711 <unfinished ...>
73  <... mkdir resumed> <unfinished ...>)   = ?
";
        let calls = whole_calls(trace);
        let with_modes: Vec<(&str, Option<u32>)> = calls.iter().map(|call| (&call[..4], mode_of(call))).collect();
        let expected = [
            ("open", None),
            ("mkdi", Some(0o700)),
            ("--- ", None),
            ("open", Some(0o600)),
            ("open", Some(0o644)),
            ("mkdi", Some(0o711)),
            ("mkdi", Some(0o755)),
        ];
        assert_eq!(with_modes, expected);
        assert_eq!(calls[1], "mkdir(\"/spill/nearprint-x\", 0700)                    = 0");
    }
}
