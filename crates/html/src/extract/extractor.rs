//! Takes the texts of pages.

use std::str::FromStr;

use scraper::Selector;

use super::dom::{Dom, Holds};
use super::error::{HtmlError, Result};
use super::render::text_of_nodes;
use super::{main_text, select};
use crate::mode::{HtmlText, Syntax};

impl HtmlText {
    /// Checks the selector, if there is one.
    ///
    /// # Errors
    /// It is no CSS selector that is understood.
    pub fn check(&self) -> Result<()> {
        Extractor::try_new(self).map(drop)
    }
}

impl FromStr for HtmlText {
    type Err = HtmlError;

    /// Reads `main`, `all`, or `selector=` and a CSS selector.
    fn from_str(text: &str) -> Result<Self> {
        let mode = match text.split_once('=') {
            None if text == "main" => Self::Main,
            None if text == "all" => Self::All,
            Some(("selector", selector)) => Self::Selector(selector.to_owned()),
            _ => return Err(HtmlError::Mode { text: text.to_owned() }),
        };
        mode.check().map(|()| mode)
    }
}

/// Takes the texts of pages.
#[derive(Debug, Clone)]
pub struct Extractor(TextChoice);

#[derive(Debug, Clone)]
enum TextChoice {
    Main,
    All,
    Selected(Selector),
}

impl Extractor {
    /// Creates an extractor of such texts.
    ///
    /// # Errors
    /// The selector is none that is understood.
    pub fn try_new(mode: &HtmlText) -> Result<Self> {
        Ok(Self(match mode {
            HtmlText::Main => TextChoice::Main,
            HtmlText::All => TextChoice::All,
            HtmlText::Selector(selector) => TextChoice::Selected(select::parse(selector)?),
        }))
    }

    /// Returns the text of a page. Each block is a line; white space within a block is one blank, except in `<pre>`.
    #[must_use]
    pub fn text_of(&self, html: &str, syntax: Syntax) -> String {
        let holds = if matches!(self.0, TextChoice::Selected(_)) { Holds::All } else { Holds::Known };
        let dom = Dom::parse(html, holds, syntax);
        match &self.0 {
            TextChoice::Main => main_text::main_text(&dom),
            TextChoice::All => text_of_nodes(&dom, &[Dom::ROOT], |_| true),
            TextChoice::Selected(selector) => text_of_nodes(&dom, &select::select(&dom, selector), |_| true),
        }
    }
}
