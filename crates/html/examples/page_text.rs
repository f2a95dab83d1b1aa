//! Writes the texts of HTML files as JSON lines: `page_text MODE FILE…`, where MODE is main, all or a selector.
#![allow(clippy::print_stdout, reason = "it prints texts")]

use nearprint_html::{Extractor, HtmlText, Syntax, decode};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mode = match args.next().as_deref() {
        Some("main") | None => HtmlText::Main,
        Some("all") => HtmlText::All,
        Some(selector) => HtmlText::Selector(selector.to_owned()),
    };
    let extractor = Extractor::try_new(&mode)?;
    for path in args {
        let bytes = std::fs::read(&path)?;
        let text = extractor.text_of(&decode(&bytes, None), Syntax::Html);
        println!("{}", serde_json::json!({ "file": path, "text": text }));
    }
    Ok(())
}
