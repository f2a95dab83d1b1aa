//! The words of cppjieba: its `MixSegment`, as the authors of yanyiwu's simhash run it.
//!
//! Known from cppjieba's source (github.com/yanyiwu/cppjieba, MIT; 5.4.0, and 5.6.3 for ASCII, see [`sequence`]): the
//! text is cut at five separators; each piece takes the most probable way through the dictionary; what is left as runs
//! of single characters goes through the hidden Markov model, ASCII apart. The route is jieba-rs's over a dictionary
//! that differs from cppjieba's in some sixty words; the model is not, because cppjieba lets it run over punctuation.
//!
//! Compared with cppjieba 5.4.0 under one rule for ASCII: of 2,550 texts (1.4 million words: reviews, laws, manuals,
//! news) 2,547 are cut alike. In the others two ways are equally probable, as 好 好好 and 好好 好, of which cppjieba takes
//! the one with the shorter word first and jieba-rs the other. The keywords by TF-IDF are the same in all, in the same
//! order.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::jieba::{Jieba, default_dictionary};
use crate::tokenizer::Tokenizer;

/// cppjieba's `hmm_model.utf8` (MIT, see `cppjieba/LICENSE`), compressed.
const HMM_MODEL: &[u8] = include_bytes!("cppjieba/hmm_model.txt.zst");
/// cppjieba's `stop_words.utf8` (MIT, see `cppjieba/LICENSE`).
pub(crate) const STOP_WORDS: &str = include_str!("cppjieba/stop_words.txt");

/// The separators: each stands alone, and nothing is cut across one.
const SEPARATORS: [char; 5] = [' ', '\t', '\n', '，', '。'];

/// Words that are in jieba-rs's dictionary but not in cppjieba's. All but the last were added with frequency 3.
const NOT_IN_CPPJIEBA: &str = "1号店 4S店 4s店 AA制 AB型 A型 A座 A股 A轮 BB机 BP机 B型 B座 B股 B轮 CALL机 CD机 CD盒 C座 C盘 C语言 D座 \
    D版 D盘 E化 E座 E盘 E通 F座 F盘 G盘 H盘 H股 IC卡 IP卡 IP地址 IP电话 I盘 K党 K歌之王 N年 O型 PC机 PH值 QQ号 Q版 RSS订阅 SIM卡 \
    T台 T型台 T恤衫 T盘 U盘 VISA卡 X光 X光线 X射线 Z盘 γ射线 大S 小S 江南Style 江南style 阿Q 吉林";
/// Words that are in cppjieba's dictionary but not in jieba-rs's, with their frequency.
const ONLY_IN_CPPJIEBA: [(&str, usize); 2] = [("张力", 160), ("张华", 140)];
/// The frequency that cppjieba gives a character that its dictionary lacks: the least one in it.
const LEAST_FREQUENCY: usize = 2;

/// cppjieba's cutter.
pub(crate) struct Cppjieba {
    jieba: Arc<Jieba>,
    model: Option<Arc<Model>>,
}

impl Cppjieba {
    /// The first one in a process loads the dictionary, and the first one with `hmm` the model.
    pub(crate) fn new(hmm: bool) -> Self {
        Self { jieba: dictionary(), model: hmm.then(model) }
    }

    /// The words of a piece without separators, which starts at byte `base`.
    fn cut(&self, piece: &str, base: usize, spans: &mut Vec<Range<usize>>) {
        let mut singles = 0..0;
        for token in self.jieba.cut(piece, false) {
            let range = token.byte_start..token.byte_end;
            if self.is_word(token.word) {
                self.cut_singles(piece, &singles, base, spans);
                spans.push(base + range.start..base + range.end);
                singles = range.end..range.end;
            } else {
                singles.end = range.end;
            }
        }
        self.cut_singles(piece, &singles, base, spans);
    }

    /// Returns whether a token of the route is a word of the dictionary with several characters. Apart from such words,
    /// jieba-rs joins only single ASCII letters and digits, and a line break of two characters.
    fn is_word(&self, token: &str) -> bool {
        let mut characters = token.chars();
        characters.next().is_some() && characters.next().is_some() && self.jieba.has_word(token)
    }

    fn cut_singles(&self, piece: &str, singles: &Range<usize>, base: usize, spans: &mut Vec<Range<usize>>) {
        let (text, base) = (&piece[singles.clone()], base + singles.start);
        let Some(model) = &self.model else {
            spans.extend(text.char_indices().map(|(at, c)| base + at..base + at + c.len_utf8()));
            return;
        };
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            let length = if c.is_ascii() {
                sequence(rest.as_bytes())
            } else {
                let length = rest.find(|c: char| c.is_ascii()).unwrap_or(rest.len());
                model.cut(&rest[..length], base + at, spans);
                at += length;
                continue;
            };
            spans.push(base + at..base + at + length);
            at += length;
        }
    }
}

impl Tokenizer for Cppjieba {
    fn spans(&self, text: &str, spans: &mut Vec<Range<usize>>) {
        let mut start = 0;
        for (at, separator) in text.match_indices(SEPARATORS) {
            self.cut(&text[start..at], start, spans);
            start = at + separator.len();
            spans.push(at..start);
        }
        self.cut(&text[start..], start, spans);
    }
}

/// Bytes of the ASCII token that `text` begins with: letters and digits with at most one point and the digits after it
/// (`50s`, `v1.2`, and `1.2.3` is `1.2`, `.` and `3`, `1.` is `1` and `.`), or one character.
///
/// So since cppjieba 5.6.3. In 5.4.0 a number took any points and no letters, and a word that begins with a letter took
/// no point.
fn sequence(text: &[u8]) -> usize {
    let run = |from: usize, is_in: fn(&u8) -> bool| text[from..].iter().take_while(|byte| is_in(byte)).count();
    let whole = run(0, u8::is_ascii_alphanumeric);
    let has_point = whole > 0 && text.get(whole) == Some(&b'.');
    let decimals = if has_point { run(whole + 1, u8::is_ascii_digit) } else { 0 };
    if decimals > 0 { whole + 1 + decimals } else { whole.max(1) }
}

/// jieba-rs's dictionary changed to cppjieba's. A word of frequency 0 has probability 0.
fn dictionary() -> Arc<Jieba> {
    static DICTIONARY: OnceLock<Arc<Jieba>> = OnceLock::new();
    let make = || {
        let mut jieba = Jieba::clone(&default_dictionary());
        for word in NOT_IN_CPPJIEBA.split_whitespace() {
            jieba.add_word(word, Some(0), None);
        }
        for (word, frequency) in ONLY_IN_CPPJIEBA {
            jieba.add_word(word, Some(frequency), None);
        }
        // jieba-rs takes a character alone only if it is in the dictionary or begins no word.
        for letter in ('0'..='9').chain('A'..='Z').chain('a'..='z').chain(['γ']).map(String::from) {
            if !jieba.has_word(&letter) {
                jieba.add_word(&letter, Some(LEAST_FREQUENCY), None);
            }
        }
        Arc::new(jieba)
    };
    Arc::clone(DICTIONARY.get_or_init(make))
}

/// The states, in the order of the file: begin, end, middle of a word, a word alone.
const N_STATES: usize = 4;
const BEGIN: usize = 0;
const END: usize = 1;
const MIDDLE: usize = 2;
const SINGLE: usize = 3;

/// The value that cppjieba has for the logarithm of 0. It is so large that no finite number added to it changes it.
const NEVER: f64 = -3.14e100;

/// The hidden Markov model, natural logarithms.
#[derive(Debug, Default)]
struct Model {
    start: [f64; N_STATES],
    /// `transition[from][to]`.
    transition: [[f64; N_STATES]; N_STATES],
    emission: HashMap<char, [f64; N_STATES]>,
}

impl Model {
    /// The words of a run of characters that are not ASCII.
    fn cut(&self, run: &str, base: usize, spans: &mut Vec<Range<usize>>) {
        let states = self.states(run);
        let mut start = 0;
        for ((at, c), state) in run.char_indices().zip(states) {
            if matches!(state, END | SINGLE) {
                spans.push(base + start..base + at + c.len_utf8());
                start = at + c.len_utf8();
            }
        }
    }

    /// Returns Viterbi's best states, which end in `END` or `SINGLE`. Among equals the first in the order of states
    /// wins; a state that no predecessor reaches comes from `END`. That order matters: after a character without
    /// emissions all states are equal.
    fn states(&self, run: &str) -> Vec<usize> {
        let mut best = [0.0; N_STATES];
        let mut previous: Vec<[usize; N_STATES]> = Vec::with_capacity(run.len() / 3);
        for c in run.chars() {
            let emission = self.emission.get(&c).copied().unwrap_or([NEVER; N_STATES]);
            let mut from = [END; N_STATES];
            let mut next = [NEVER; N_STATES];
            for state in [BEGIN, END, MIDDLE, SINGLE] {
                if previous.is_empty() {
                    next[state] = self.start[state] + emission[state];
                    continue;
                }
                for before in [BEGIN, END, MIDDLE, SINGLE] {
                    let weight = best[before] + self.transition[before][state] + emission[state];
                    if weight > next[state] {
                        (next[state], from[state]) = (weight, before);
                    }
                }
            }
            best = next;
            previous.push(from);
        }
        let mut state = if best[END] >= best[SINGLE] { END } else { SINGLE };
        let mut states = Vec::with_capacity(previous.len());
        for from in previous.iter().rev() {
            states.push(state);
            state = from[state];
        }
        states.reverse();
        states
    }

    /// The file's lines that are no comments: the start's numbers, four lines of transitions, four of
    /// `character:number,…`.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        let mut model = Self { start: numbers(lines.next()?)?, ..Self::default() };
        for row in &mut model.transition {
            *row = numbers(lines.next()?)?;
        }
        for state in [BEGIN, END, MIDDLE, SINGLE] {
            for entry in lines.next()?.split(',') {
                let (character, number) = entry.trim().split_once(':')?;
                let emission = model.emission.entry(character.parse().ok()?).or_insert([NEVER; N_STATES]);
                emission[state] = number.parse().ok()?;
            }
        }
        Some(model)
    }
}

fn numbers(line: &str) -> Option<[f64; N_STATES]> {
    let numbers: Option<Vec<f64>> = line.split_whitespace().map(|number| number.parse().ok()).collect();
    numbers?.try_into().ok()
}

#[expect(clippy::expect_used, reason = "a constant of the crate: an empty model would cut otherwise")]
fn model() -> Arc<Model> {
    static MODEL: OnceLock<Arc<Model>> = OnceLock::new();
    let make = || Arc::new(Model::parse(&unpack(HMM_MODEL)).expect("the model in the crate is complete"));
    Arc::clone(MODEL.get_or_init(make))
}

/// The text of a compressed constant.
#[expect(clippy::expect_used, reason = "constants of the crate: an empty one would give other fingerprints")]
pub(crate) fn unpack(compressed: &[u8]) -> String {
    let bytes = zstd::decode_all(compressed).expect("the constants in the crate are whole");
    String::from_utf8(bytes).expect("the constants in the crate are UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_in_the_crate_is_complete() {
        let model = Model::parse(&unpack(HMM_MODEL)).unwrap();
        assert_eq!(model.emission.len(), 14_632);
        assert!(model.transition[BEGIN][END] > -1.0 && model.transition[BEGIN][BEGIN] < -1e100);
    }
}
