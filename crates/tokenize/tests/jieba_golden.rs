//! Python jieba 0.42.1's own output.

use nearprint_tokenize::{Analyzer, Resources, TokenizeConfig, TokenizerConfig, TokenizerKind};
use serde_json::Value;

fn golden_lines() -> Vec<Value> {
    let text = include_str!("data/jieba_tokens.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn jieba(hmm: bool) -> Analyzer {
    let tokenizer = TokenizerConfig {
        kind: TokenizerKind::Jieba,
        hmm,
        drop_tokens_without_alphanumeric: false,
        ..TokenizerConfig::default()
    };
    let config = TokenizeConfig { tokenizer, ..TokenizeConfig::default() };
    Analyzer::try_new(&config, &Resources::default()).unwrap()
}

/// Line numbers (from 1) of which the tokens differ, each shown.
fn different_lines(hmm: bool, field: &str) -> Vec<usize> {
    let analyzer = jieba(hmm);
    let mut different = Vec::new();
    for (at, line) in golden_lines().iter().enumerate() {
        let expected: Vec<&str> = line[field].as_array().unwrap().iter().map(|token| token.as_str().unwrap()).collect();
        let tokens = analyzer.tokens(line["text"].as_str().unwrap());
        let got: Vec<&str> = tokens.iter().collect();
        if got != expected {
            println!("line {}:\n  python {expected:?}\n  ours   {got:?}", at + 1);
            different.push(at + 1);
        }
    }
    different
}

#[test]
fn jieba_without_hmm_cuts_as_python_jieba() {
    assert_eq!(golden_lines().len(), 117);
    assert_eq!(different_lines(false, "nohmm"), [0; 0]);
}

#[test]
fn jieba_with_hmm_cuts_as_python_jieba() {
    assert_eq!(different_lines(true, "hmm"), [0; 0]);
}
