//! B29, B30: web pages and WARC files that strangers wrote.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use nearprint_harness::Result;
use nearprint_harness::folder::{Folder, expect};
use nearprint_harness::measured::{Checks, Options};
use nearprint_harness::random::text;

/// Bytes of a page of broken HTML.
const PAGE_BYTES: usize = 2 << 20;
/// Processor time that a page may take, and that a run without pages takes.
const SECONDS_A_MB: f64 = 0.5;

/// Broken HTML of about `n` bytes, by what is wrong with it.
pub fn broken_pages(n: usize) -> Vec<(&'static str, String)> {
    let again = |piece: &str| piece.repeat(n / piece.len().max(1));
    let after = |before: String, piece: &str| before + &again(piece);
    let numbered = |piece: &dyn Fn(usize) -> String| {
        let mut page = String::new();
        for i in 0.. {
            if page.len() >= n {
                break;
            }
            page.push_str(&piece(i));
        }
        page
    };
    let deep = |tag: &str| format!("<{tag}>").repeat(255);
    vec![
        ("end tags of what is not open, below 256 <span>", after(deep("span"), "</b>")),
        ("end tags that a block far out stops", after("<b><div>".to_owned() + &deep("span"), "</b>")),
        ("end tags of cells below 256 <span>", after(deep("span"), "</td>")),
        ("entries of no list, below 256 <span>", after(deep("span"), "<li>")),
        ("cells of no table, below 256 <span>", after(deep("span"), "<td>")),
        ("options of no choice, below 256 <span>", after(deep("span"), "<option>")),
        ("paragraphs below 256 <span>", after(deep("span"), "<p>")),
        ("empty SVG tags below 256 <span>", after(deep("span"), "<g/>")),
        ("forms that end, below 254 <div>", after("<div>".repeat(254), "<form></form>")),
        ("headers below 250 <div>", after("<div>".repeat(250), "<header>a</header>")),
        ("<div> in one another", again("<div>")),
        ("<div> in one another, and their ends", again("<div>") + &again("</div>")),
        ("<b><i> misnested", again("<b><i>a</b></i>")),
        ("<a> that is never closed", again("<a href=x>a")),
        ("<nobr> in one another", again("<nobr>a")),
        ("formatting that each paragraph takes over", again("<p><b><i><u><s><tt>a")),
        ("tables in tables", again("<table><tr><td>")),
        ("text between the rows of tables", again("<table>a<tr>b<td>c</table>")),
        ("<table> in one another without cells", again("<table>a")),
        ("<select> and <option>", again("<select><option>a<optgroup>")),
        ("<form> in one another", again("<form>a")),
        ("<button> in one another", again("<button>a<p>")),
        ("<li> and <dd> in lists that are not closed", again("<ul><li>a<dl><dd>b<dt>")),
        ("headings in one another", again("<h1>a<h2>b<h3>")),
        ("<ruby>", again("<ruby>a<rp>(<rt>b<rp>)")),
        ("<template> in one another", again("<template><td>a")),
        ("<frameset>", again("<frameset><frame>")),
        ("SVG and MathML", again("<svg><math><mi><desc><p>a")),
        ("<p> over and over", again("<p>")),
        ("</p> over and over", again("</p>")),
        ("</br> over and over", again("</br>")),
        ("<!DOCTYPE> over and over", again("<!DOCTYPE html>")),
        ("<html><head><body> over and over", again("<html><head><body>")),
        ("<isindex> and <plaintext>", again("<isindex>") + &again("<plaintext>")),
        ("<script> that is not closed", after("<script>".to_owned(), "<!--<script></scrip>")),
        ("<style> that is not closed", after("<style>".to_owned(), "</styl a=b>")),
        ("<textarea> that is not closed", after("<textarea>".to_owned(), "</textare &amp;")),
        ("<title> that is not closed", after("<title>".to_owned(), "<b a=b>")),
        ("a comment that is not closed", after("<!--".to_owned(), "--!<a ")),
        ("short comments", again("<!---->")),
        ("CDATA", again("<![CDATA[a]]>")),
        ("a tag that is not closed", after("<div ".to_owned(), "<a b=")),
        ("NUL characters", again("\0<\0p\0>")),
        ("'<' over and over", again("<")),
        ("'&' over and over", again("&")),
        ("entities that are none", again("&notanentity;&#x;&#99999999;")),
        ("a value of an attribute of all the page", format!("<p class=\"{}\">a", again("nav "))),
        ("a style of all the page", format!("<p style=\"{}\">a", again("display : nonee; "))),
        ("one tag of all attributes", format!("<p {}>a", numbered(&|i| format!("a{i} ")))),
        (
            "tags of 1000 attributes",
            numbered(&|i| format!("<p {}>", (0..1000).map(|k| format!("{:x} ", i + k)).collect::<String>())),
        ),
        ("elements that no other page has", numbered(&|i| format!("<element{i}>a"))),
        ("attributes that no other page has", numbered(&|i| format!("<p attribute{i}=1>a"))),
        ("classes of many words", numbered(&|i| format!("<div class='a{i} bC dE-fG'>a</div>"))),
        ("links of menus", again("<li><a href=#a>www.a</a><nav>b</nav>")),
        ("white space", after("<head>".to_owned(), " \n<meta>")),
        ("one line of text", again("word ")),
        ("Han without blanks", again("今天天气很好")),
        ("hidden elements in one another", again("<div hidden><main role=main>a")),
    ]
}

fn processor_seconds() -> Result<f64> {
    let used = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |time: nix::sys::time::TimeVal| time.num_microseconds() as f64 / 1e6;
    Ok(seconds(used.user_time()) + seconds(used.system_time()))
}

/// Each page is read by a run of its own, whose processor time counts; that of a small page is taken off.
pub fn broken_html(options: &Options, checks: &mut Checks) -> Result<()> {
    let read = |page: &str| -> Result<(Folder, nearprint_harness::runner::Ran, f64)> {
        let folder = Folder::new(options, "")?;
        folder.put("page.html", page.as_bytes())?;
        let before = processor_seconds()?;
        let args =
            ["fingerprint", "--documents", "documents", "--output", "out", "--spill-dir", "spill", "--threads", "1"];
        let done = folder.command(&args).run()?;
        Ok((folder, done, processor_seconds()? - before))
    };
    let least = read("<p>a</p>")?.2;
    let mut times = Vec::new();
    for (what, page) in broken_pages(PAGE_BYTES) {
        let (_folder, done, seconds) = read(&page)?;
        let a_mb = (seconds - least).max(0.0) / (page.len() as f64 / 1e6);
        let ended = expect(done.code == 0, || done.said());
        checks.count(what, ended.and(expect(a_mb <= SECONDS_A_MB, || format!("{a_mb:.2} s a MB"))));
        times.push((a_mb, what));
    }
    times.sort_by(|a, b| b.0.total_cmp(&a.0));
    let slowest: Vec<String> = times.iter().take(2).map(|(time, what)| format!("{what}: {time:.2} s a MB")).collect();
    checks.note(format!("{} pages of 2 MB; slowest: {}", times.len(), slowest.join(", ")));
    Ok(())
}

fn record(uri: &str, content_type: &str, block: &[u8]) -> Vec<u8> {
    let kind = if content_type == "application/warc" { "resource" } else { "response" };
    let head = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <{uri}>\r\nWARC-Target-URI: {uri}\r\n\
         WARC-Date: 2026-11-20T00:00:00Z\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        block.len()
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

fn member(bytes: &[u8], level: Compression) -> Result<Vec<u8>> {
    let mut member = GzEncoder::new(Vec::new(), level);
    member.write_all(bytes)?;
    Ok(member.finish()?)
}

/// A packed file of pages. Each has a URL of its own below that of the site.
fn packed_pages(site: &str, n: usize) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    for i in 0..n {
        let mut page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n".to_owned();
        write!(page, "<p>{}</p>", text(i as u64, 60))?;
        let page = record(&format!("http://{site}/{i}"), "application/http", page.as_bytes());
        file.extend(member(&page, Compression::default())?);
    }
    Ok(file)
}

/// The first stored block of a gzip member that begins behind a place: where its size stands.
fn block_size_behind(member: &[u8], place: usize) -> Result<usize> {
    // The head of the member has ten bytes; one byte is before each size.
    let mut at = 11;
    while at < place {
        let size = member.get(at..at + 2).ok_or("no block behind the place")?;
        at += 5 + usize::from(u16::from_le_bytes([size[0], size[1]]));
    }
    Ok(at)
}

/// A crawl of 300 pages, and a record that holds another crawl's file as it is.
pub fn nested_warc(options: &Options, checks: &mut Checks) -> Result<()> {
    let own = packed_pages("own.example", 300)?;
    let strange = packed_pages("stranger.example", usize::try_from(options.scaled(8000))?.max(100))?;
    // More than a span, so that several tasks read the file.
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let noise: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(17 << 20).collect();
    let inner = [&strange, &noise, &strange[..]].concat();
    let holder = member(&record("http://own.example/crawl", "application/warc", &inner), Compression::none())?;
    let last = packed_pages("last.example", 5)?;
    let within = own.len() + strange.len() / 2;
    let with = |at: usize| {
        let mut file = [&own[..], &holder, &last].concat();
        file[at] ^= 1;
        file
    };
    let whole = own.len() + holder.len();
    for (what, bytes, pages) in [
        ("cut at its end", [&own[..], &holder].concat()[..whole - 100].to_vec(), 300),
        ("cut in its first pages", [&own[..], &holder].concat()[..within].to_vec(), 300),
        ("a bit of its bytes flipped", with(within), 305),
        ("a size of its packing flipped", with(own.len() + block_size_behind(&holder, noise.len())?), 305),
    ] {
        for threads in ["1", "4"] {
            let folder = Folder::new(options, "")?;
            folder.put("crawl.warc.gz", &bytes)?;
            let flags = ["--max-bad-rows", "100000", "--no-breakers", "--threads", threads];
            let done = folder.run(&flags)?;
            let outcome = folder.published_soundly(&done, &flags).and_then(|summary| {
                let found = (summary["n_documents"].as_u64(), summary["n_bad_rows"].as_u64());
                expect(found == (Some(pages), Some(1)), || format!("documents and bad rows: {found:?}"))
            });
            checks.count(&format!("{what}, {threads} threads"), outcome);
        }
    }
    checks.note(format!("{} MB, {} MB of it within the record", whole >> 20, inner.len() >> 20));
    Ok(())
}
