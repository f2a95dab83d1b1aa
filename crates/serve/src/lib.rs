//! The answers of a store over HTTP: a text or a fingerprint comes in, the documents near it go out. A page asks from a
//! browser.
//!
//! [`Server`] knows HTTP: limits, timeouts, the token, metrics. [`Answers`] is what it serves, and [`StoreAnswers`] is
//! the store behind it.

mod answers;
mod app;
mod body;
mod follow;
mod guard;
mod metrics;
mod options;
mod page;
mod places;
mod refusal;
mod routes;
mod server;
mod store_answers;
mod token;

pub use answers::{Answers, Side};
pub use options::{ServeOptions, Timeouts};
pub use server::{Served, Server};
pub use store_answers::{DocumentTexts, StoreAnswers};
pub use token::Token;
