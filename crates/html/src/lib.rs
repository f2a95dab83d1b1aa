//! Bytes of a web page to its text.
//!
//! ```text
//! bytes ─► decode (header, BOM, <meta>, detection) ─► tokens ─► Dom (bounded depth) ─► main, all or selected text
//! ```
//!
//! The text depends on the bytes, the hint and the mode alone. The work grows with the size of the page, whatever its
//! tags are: elements nest at most [`MAX_DEPTH`] deep, and the tags of deeper ones are left out.
//!
//! ```
//! use nearprint_html::{HtmlText, decode, text_of};
//!
//! let page = b"<html><nav><a href='/'>Home</a></nav><p>One line,<br>and <b>an</b>other</p></html>";
//! let html = decode(page, Some("text/html; charset=utf-8"));
//! assert_eq!(text_of(&html, &HtmlText::All)?, "Home\nOne line,\nand another\n");
//! assert_eq!(text_of(&html, &HtmlText::Selector("p > b".into()))?, "an\n");
//! # Ok::<(), nearprint_html::HtmlError>(())
//! ```

mod charset;
mod dom;
mod error;
mod main_text;
mod mode;
mod names;
mod render;
mod score;
mod select;
mod signs;

pub use charset::decode;
pub use dom::MAX_DEPTH;
pub use error::{HtmlError, Result};
pub use mode::{EXTRACTOR_VERSION, HtmlText, text_of};
