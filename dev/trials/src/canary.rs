//! S3: a secret given in any way is neither said nor written.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use nearprint_harness::Result;
use nearprint_harness::folder::{DT, Folder, Outcome};
use nearprint_harness::measured::{Checks, Options, shortened};
use nearprint_harness::row::Row;
use nearprint_harness::runner::{HUNG, Ran};
use nearprint_harness::secrets::{ENV, hits, scan};

/// The beginning of all secrets of these trials; each ends in its own way.
const MARK: &str = "zq7CANARY";

/// A way to give a secret: environment, flags, and lines of the job file; `{server}` is the address of a server of the trial, `{dir}`
/// the folder.
struct Way {
    what: &'static str,
    env: &'static [(&'static str, &'static str)],
    job: &'static str,
    flags: &'static [&'static str],
    /// Exit codes; none where it depends on the server.
    codes: &'static [i32],
}

const S3_PLACES: [&str; 6] =
    ["--documents", "s3://bucket/documents", "--store", "s3://bucket/store", "--output", "s3://bucket/results"];

const WAYS: [Way; 16] = [
    Way {
        what: "environment",
        env: &ENV,
        job: "[s3]\nendpoint = \"{server}\"\nretry_seconds = 1\n",
        flags: &S3_PLACES,
        codes: &[],
    },
    Way { what: "environment, local night", env: &ENV, job: "", flags: &[], codes: &[0] },
    Way {
        what: "credentials file",
        env: &[("AWS_SHARED_CREDENTIALS_FILE", "{dir}/secret/credentials"), ("AWS_PROFILE", "nightly")],
        job: "[s3]\nendpoint = \"{server}\"\nretry_seconds = 1\n",
        flags: &S3_PLACES,
        codes: &[],
    },
    Way {
        what: "configuration file",
        env: &[("AWS_CONFIG_FILE", "{dir}/secret/config"), ("AWS_PROFILE", "nightly")],
        job: "[s3]\nendpoint = \"{server}\"\nretry_seconds = 1\n",
        flags: &S3_PLACES,
        codes: &[],
    },
    Way {
        what: "credential_process",
        env: &[("AWS_CONFIG_FILE", "{dir}/secret/config"), ("AWS_PROFILE", "process")],
        job: "[s3]\nendpoint = \"{server}\"\nretry_seconds = 1\n",
        flags: &S3_PLACES,
        codes: &[],
    },
    Way {
        what: "credential_process that fails",
        env: &[("AWS_CONFIG_FILE", "{dir}/secret/config"), ("AWS_PROFILE", "broken")],
        job: "[s3]\nendpoint = \"{server}\"\nretry_seconds = 1\n",
        flags: &S3_PLACES,
        codes: &[77, 78],
    },
    Way {
        what: "user and password in the endpoint",
        env: &ENV,
        job: "[s3]\nendpoint = \"http://user:zq7CANARYuserinfo1@127.0.0.1:9\"\nretry_seconds = 1\n",
        flags: &S3_PLACES,
        codes: &[69, 77, 78],
    },
    Way {
        what: "AWS_ENDPOINT_URL with user and password",
        env: &[
            ENV[0],
            ENV[1],
            ("AWS_ENDPOINT_URL", "http://user:zq7CANARYuserinfo2@127.0.0.1:9"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ],
        job: "[s3]\nretry_seconds = 1\nendpoint = \"{server}\"\n",
        flags: &S3_PLACES,
        codes: &[],
    },
    Way {
        what: "user and password in documents",
        env: &ENV,
        job: "[s3]\nendpoint = \"{server}\"\nretry_seconds = 1\n",
        flags: &["--documents", "s3://key:zq7CANARYuserinfo3@bucket/documents"],
        codes: &[64, 66, 69, 77, 78],
    },
    Way {
        what: "user and password in store",
        env: &ENV,
        job: "[s3]\nendpoint = \"{server}\"\nretry_seconds = 1\n",
        flags: &["--store", "s3://key:zq7CANARYuserinfo4@bucket/store"],
        codes: &[64, 66, 69, 77, 78],
    },
    Way {
        what: "user and password in output",
        env: &ENV,
        job: "[s3]\nendpoint = \"{server}\"\nretry_seconds = 1\n",
        flags: &["--output", "https://key:zq7CANARYuserinfo5@bucket.example/results"],
        codes: &[64, 66, 69, 77, 78],
    },
    Way {
        what: "presigned documents",
        env: &[],
        job: "",
        flags: &[
            "--documents",
            "https://bucket.s3.amazonaws.com/d.parquet?X-Amz-Credential=zq7CANARYcred&X-Amz-Signature=zq7CANARYsig&X-Amz-Security-Token=zq7CANARYtok",
        ],
        codes: &[64, 66, 69, 77, 78],
    },
    Way {
        what: "presigned store on s3://",
        env: &ENV,
        job: "[s3]\nendpoint = \"{server}\"\nretry_seconds = 1\n",
        flags: &["--store", "s3://bucket/store?X-Amz-Signature=zq7CANARYsig2&x-amz-security-token=zq7CANARYtok2"],
        codes: &[64, 66, 69, 77, 78],
    },
    Way {
        what: "an unknown key of [s3]",
        env: &[],
        job: "[s3]\nsecret = \"zq7CANARYkey1\"\n",
        flags: &[],
        codes: &[78],
    },
    Way {
        what: "an unknown key, not TOML",
        env: &[],
        job: "[s3]\nsecret_access_key = zq7CANARYkey2\n",
        flags: &[],
        codes: &[78],
    },
    Way {
        what: "a known key with a secret as its value",
        env: &[],
        job: "[s3]\nallow_http = \"zq7CANARYkey3\"\n",
        flags: &[],
        codes: &[78],
    },
];

pub fn run(options: &Options) -> Result<Vec<Row>> {
    let mut checks = Checks::new(
        "S3",
        "secrets in environment, files, processes, URLs and job keys; servers that refuse, echo, fail, are not there",
        "no byte of it in output, logs, published and temporary files, or a command line",
    );
    checks.count("a planted secret is found", planted(options));
    for way in &WAYS {
        for answer in Answer::ALL {
            // The server makes a difference only where it is asked.
            if answer != Answer::Denied && !way.job.contains("{server}") {
                continue;
            }
            let outcome = one(options, way, answer).unwrap_or_else(|e| Err(e.to_string()));
            checks.count(&format!("{}, {answer:?}", way.what), outcome);
        }
    }
    Ok(vec![checks.finish()])
}

/// That the search itself works.
fn planted(options: &Options) -> Outcome {
    let said = |e: nearprint_harness::Error| e.to_string();
    let scratch = options.scratch().map_err(said)?;
    let file = scratch.path().join("deep/file.bin");
    let io = |e: std::io::Error| e.to_string();
    std::fs::create_dir_all(scratch.path().join("deep")).map_err(io)?;
    std::fs::write(&file, [b"\xff\x00".as_slice(), ENV[1].1.as_bytes(), b"\n"].concat()).map_err(io)?;
    let found = scan(&[scratch.path()], &[ENV[1].1]).map_err(said)?;
    if found.len() == 1 { Ok(()) } else { Err(format!("{found:?}")) }
}

fn one(options: &Options, way: &Way, answer: Answer) -> Result<Outcome> {
    let server = Server::start(answer)?;
    let job = way.job.replace("{server}", &server.url());
    let folder = Folder::new(options, &job)?;
    folder.good()?;
    secret_files(folder.path())?;
    let mut command_lines = Vec::new();
    for command in commands(way) {
        let args: Vec<&str> = command.iter().map(String::as_str).collect();
        let dir = folder.path().display().to_string();
        let call = folder.command(&args).env("TMPDIR", &format!("{dir}/spill")).env("HOME", &format!("{dir}/secret"));
        let call = call.env("AWS_EC2_METADATA_DISABLED", "true");
        let call = way.env.iter().fold(call, |call, (name, value)| call.env(name, &value.replace("{dir}", &dir)));
        let watch = Watch::start();
        let done = call.run()?;
        command_lines.extend(watch.stop());
        if let Err(why) = said_nothing(&done, &args, way, command[0] == "run") {
            return Ok(Err(format!("{}: {why}", command[0])));
        }
        let own = [folder.path().join("store"), folder.path().join("results"), folder.path().join("spill")];
        let own: Vec<&Path> = own.iter().map(PathBuf::as_path).collect();
        let found = scan(&own, &[MARK])?;
        if !found.is_empty() {
            return Ok(Err(format!("{}: {found:?}", command[0])));
        }
    }
    // What was given on the command line by the trial itself is there by the operator's choice.
    let given = way.flags.iter().any(|f| f.contains(MARK));
    if !given && !command_lines.is_empty() {
        return Ok(Err(format!("on a command line: {}", shortened(&command_lines.join(" "), 200))));
    }
    Ok(if way.job.contains("{server}") && way.flags == S3_PLACES && way.codes.is_empty() && server.asked() == 0 {
        Err("the server was never asked: the trial shows nothing".to_owned())
    } else {
        Ok(())
    })
}

fn said_nothing(done: &Ran, args: &[&str], way: &Way, is_run: bool) -> Outcome {
    if done.code == HUNG {
        return Err("it hung".to_owned());
    }
    for (stream, text) in [("stdout", &done.stdout), ("stderr", &done.stderr)] {
        if hits(text.as_bytes(), &[MARK]).next().is_some() {
            let at = text.to_lowercase().find(&MARK.to_lowercase()).unwrap_or_default();
            let near: String = text.chars().skip(at.saturating_sub(60)).take(140).collect();
            return Err(format!("on {stream} of {args:?}: …{near}…"));
        }
    }
    if is_run && !way.codes.is_empty() && !way.codes.contains(&done.code) {
        return Err(format!("{}, expected {:?}", done.said(), way.codes));
    }
    if done.stdout.is_empty() && done.stderr.is_empty() { Err("it said nothing at all".to_owned()) } else { Ok(()) }
}

/// Commands that touch the places: with logs, with the summary, each way of failing.
fn commands(way: &Way) -> Vec<Vec<String>> {
    let owned = |args: &[&str]| args.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>();
    let mut run = owned(&["run", "--config", "job.toml", "--dt", DT, "--spill-dir", "spill", "-vv", "--json"]);
    run.extend(owned(way.flags));
    let mut quiet = owned(&["run", "--config", "job.toml", "--dt", DT, "--spill-dir", "spill"]);
    quiet.extend(owned(way.flags));
    let value = |flag: &str| way.flags.iter().skip_while(|f| **f != flag).nth(1).copied();
    let mut all = vec![run, quiet];
    let documents = value("--documents").unwrap_or("documents");
    all.push(owned(&[
        "fingerprint",
        "--config",
        "job.toml",
        "--documents",
        documents,
        "--output",
        "out",
        "--spill-dir",
        "spill",
        "-vv",
    ]));
    for kind in ["info", "check"] {
        all.push(owned(&["store", kind, value("--store").unwrap_or("store"), "--config", "job.toml", "-vv", "--json"]));
    }
    all.push(owned(&["report", "--config", "job.toml", "--dt", DT, "-vv"]));
    all
}

/// Writes the files that AWS programs read: profiles with keys, with a process that prints them, with one that fails.
fn secret_files(folder: &Path) -> Result<()> {
    let secret = folder.join("secret");
    std::fs::create_dir_all(secret.join(".aws"))?;
    let keys = "aws_access_key_id = zq7CANARYfileid\naws_secret_access_key = zq7CANARYfilekey\naws_session_token = zq7CANARYfiletoken\n";
    std::fs::write(secret.join("credentials"), format!("[default]\n{keys}\n[nightly]\n{keys}"))?;
    let process = secret.join("process.sh");
    let json = r#"{"Version":1,"AccessKeyId":"zq7CANARYprocid","SecretAccessKey":"zq7CANARYprockey","SessionToken":"zq7CANARYproctoken"}"#;
    std::fs::write(&process, format!("echo '{json}'\n"))?;
    let broken = secret.join("broken.sh");
    std::fs::write(&broken, "echo 'zq7CANARYbrokenout {'\necho zq7CANARYbrokenerr >&2\nexit 3\n")?;
    let config = format!(
        "[default]\nregion = us-east-1\n[profile nightly]\n{keys}\n[profile process]\ncredential_process = sh {}\n[profile broken]\n\
         credential_process = sh {}\n",
        process.display(),
        broken.display()
    );
    Ok(std::fs::write(secret.join("config"), config)?)
}

/// Looks at all command lines while something runs.
struct Watch {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Vec<String>>,
}

impl Watch {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut found = Vec::new();
            while !told.load(Ordering::Relaxed) {
                found.extend(command_lines_with_secrets());
                std::thread::sleep(Duration::from_millis(2));
            }
            found.sort();
            found.dedup();
            found
        });
        Self { stop, thread }
    }

    fn stop(self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// Of the command only: other programs' command lines are not its doing.
fn command_lines_with_secrets() -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let of_command = line.windows(9).any(|w| w == b"nearprint") || line.windows(10).any(|w| w == b"process.sh");
        if of_command && hits(&line, &[MARK]).next().is_some() {
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    found
}

/// The answer of a trial's server; all but the last repeat the request's headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// As S3 says it: the request is in the answer, but not in its message.
    Denied,
    /// A proxy that shows the request in its error page.
    Shown,
    NoBucket,
    Failed,
    Garbage,
    Closed,
}

impl Answer {
    const ALL: [Self; 6] = [Self::Denied, Self::Shown, Self::NoBucket, Self::Failed, Self::Garbage, Self::Closed];

    fn response(self, request: &str) -> Option<String> {
        let escaped = request.replace('&', "&amp;").replace('<', "&lt;");
        let shown = format!("The request was {escaped}");
        let (status, code, message) = match self {
            Self::Denied => ("403 Forbidden", "SignatureDoesNotMatch", "The request signature does not match"),
            Self::Shown => ("403 Forbidden", "SignatureDoesNotMatch", shown.as_str()),
            Self::NoBucket => ("404 Not Found", "NoSuchBucket", "The specified bucket does not exist"),
            Self::Failed => ("503 Service Unavailable", "SlowDown", "Please reduce your request rate"),
            Self::Garbage => return Some(http("200 OK", request)),
            Self::Closed => return None,
        };
        let body = format!(
            "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{message}</Message><CanonicalRequest>{escaped}</CanonicalRequest></Error>"
        );
        Some(http(status, &body))
    }
}

fn http(status: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// A server on loopback that answers everything in one way, until it is dropped.
struct Server {
    address: std::net::SocketAddr,
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl Server {
    fn start(answer: Answer) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (told, count) = (Arc::clone(&stop), Arc::clone(&asked));
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                if told.load(Ordering::Relaxed) {
                    break;
                }
                count.fetch_add(1, Ordering::Relaxed);
                // A client that goes away is no failure of the server.
                std::thread::spawn(move || drop(serve(connection, answer)));
            }
        });
        Ok(Self { address, stop, asked })
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for connections, so that it ends.
        drop(TcpStream::connect(self.address));
    }
}

fn serve(mut connection: TcpStream, answer: Answer) -> std::io::Result<()> {
    connection.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.windows(4).any(|w| w == b"\r\n\r\n") {
        let n = connection.read(&mut buffer)?;
        if n == 0 {
            return Ok(());
        }
        request.extend_from_slice(&buffer[..n]);
    }
    if let Some(response) = answer.response(&String::from_utf8_lossy(&request)) {
        connection.write_all(response.as_bytes())?;
    }
    Ok(())
}
