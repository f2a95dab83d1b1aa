//! The page: one file, which loads nothing else.

use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

const HTML: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// The page and its policy. The policy allows this style and this script by their digests, requests to the server
/// itself, and nothing else.
#[derive(Debug)]
pub struct Page {
    html: String,
    policy: String,
}

impl Page {
    pub fn new() -> Self {
        let html = HTML.replace("/* style */", STYLE).replace("/* script */", SCRIPT);
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; img-src data:; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
            digest(SCRIPT),
            digest(STYLE)
        );
        Self { html, policy }
    }

    pub fn response(&self) -> Response {
        // A policy that is no value of a header makes this an error, and not a page without one.
        ([(header::CONTENT_SECURITY_POLICY, self.policy.clone())], Html(self.html.clone())).into_response()
    }
}

fn digest(text: &str) -> String {
    BASE64_STANDARD.encode(Sha256::digest(text))
}
