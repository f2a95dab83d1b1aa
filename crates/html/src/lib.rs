//! Bytes of a web page to its text.
//!
//! ```text
//! bytes ─► decode (header, BOM, <meta>, detection) ─► tokens ─► Dom (bounded depth) ─► main, all or selected text
//! ```
//!
//! The text depends on the bytes, the hint and the mode alone. But for selectors that compare siblings (`~`, `:nth-child`), the work
//! grows with the size of the page, whatever its tags are: elements nest at most [`MAX_DEPTH`] deep, and the tags of deeper ones are left out; so are the attributes
//! behind the first 1000 of a tag.
//!
//! ```
//! use nearprint_html::{Extractor, HtmlText, Syntax, decode};
//!
//! let page = b"<html><nav><a href='/'>Home</a></nav><p>One line,<br>and <b>an</b>other</p></html>";
//! let html = decode(page, Some("text/html; charset=utf-8"));
//! assert_eq!(Extractor::try_new(&HtmlText::All)?.text_of(&html, Syntax::Html), "Home\nOne line,\nand another\n");
//! assert_eq!(Extractor::try_new(&HtmlText::Selector("p > b".into()))?.text_of(&html, Syntax::Html), "an\n");
//! # Ok::<(), nearprint_html::HtmlError>(())
//! ```

#[cfg(feature = "extract")]
mod extract;
mod mode;

#[cfg(feature = "extract")]
pub use extract::{Extractor, HtmlError, MAX_DEPTH, Result, decode, title_of};
pub use mode::{EXTRACTOR_VERSION, HtmlText, Syntax};
