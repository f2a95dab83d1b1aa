//! The modules of a crate and what they import, read from the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

/// A module by its path from the crate's root, which is empty.
pub type Module = Vec<String>;

/// For each module those that it names, in imports and in paths. Tests at the end of a file do not count.
pub fn imports(src: &Path) -> BTreeMap<Module, BTreeSet<Module>> {
    let files: BTreeMap<Module, String> = super::support::snapshot(src)
        .into_iter()
        .filter(|(path, _)| path.extension().is_some_and(|e| e == "rs"))
        .map(|(path, text)| (module(&path), String::from_utf8(text).unwrap()))
        .collect();
    let names: BTreeSet<Module> = files.keys().cloned().collect();
    let named = |own: &Module, text: &String| {
        let paths = paths(&bare(text)).into_iter();
        paths.filter_map(|path| resolve(own, &path, &names)).filter(|other| other != own).collect()
    };
    files.iter().map(|(own, text)| (own.clone(), named(own, text))).collect()
}

fn module(path: &Path) -> Module {
    let mut parts: Module = path.with_extension("").iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if matches!(parts.last().unwrap().as_str(), "lib" | "main" | "mod") {
        parts.pop();
    }
    parts
}

// To make one takes longer than to look through a file.
static COMMENT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)(^|\s)//[^\n]*").unwrap());
static TEXT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"(?s)"(\\.|[^"\\])*""#).unwrap());
static IMPORT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\buse\s+([^;]+);").unwrap());
static PATH: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b(?:crate|super|self)(?:::\w+)+").unwrap());

/// Without comments, strings and unit tests.
fn bare(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    TEXT.replace_all(&COMMENT.replace_all(text, ""), "").into_owned()
}

fn paths(text: &str) -> Vec<Vec<String>> {
    let imported = IMPORT.captures_iter(text).flat_map(|found| {
        let tree: String = found[1].split_whitespace().collect::<Vec<_>>().join(" ");
        expand(&tree)
    });
    let mut all: Vec<String> = imported.collect();
    let rest = IMPORT.replace_all(text, "");
    all.extend(PATH.find_iter(&rest).map(|found| found.as_str().to_owned()));
    let parts = |path: &String| path.split("::").map(|part| part.trim().to_owned()).collect();
    all.iter().map(parts).collect()
}

/// `a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`.
fn expand(tree: &str) -> Vec<String> {
    let Some((before, rest)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap().trim().to_owned()];
    };
    let body = rest.rsplit_once('}').unwrap_or_else(|| panic!("{tree}")).0;
    let (mut depth, mut items) = (0, vec![String::new()]);
    for c in body.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c == ',' && depth == 0 {
            items.push(String::new());
        } else {
            items.last_mut().unwrap().push(c);
        }
    }
    let items = items.iter().filter(|item| !item.trim().is_empty());
    items.flat_map(|item| expand(item.trim())).map(|item| format!("{}{item}", before.trim())).collect()
}

/// The innermost module that a path leads to.
fn resolve(own: &Module, path: &[String], names: &BTreeSet<Module>) -> Option<Module> {
    let (mut at, mut rest) = (own.clone(), path);
    match rest.first()?.as_str() {
        "crate" => (at, rest) = (Module::new(), &rest[1..]),
        "self" => rest = &rest[1..],
        "super" => {
            while rest.first().is_some_and(|part| part == "super") {
                at.pop();
                rest = &rest[1..];
            }
        }
        first if names.contains(&[own.as_slice(), &[first.to_owned()]].concat()) => {}
        _ => return None,
    }
    for part in rest {
        let below = [at.as_slice(), std::slice::from_ref(part)].concat();
        if !names.contains(&below) {
            break;
        }
        at = below;
    }
    Some(at)
}

/// A way from some module back to itself; `None` where there is none.
pub fn circle(imports: &BTreeMap<Module, BTreeSet<Module>>) -> Option<Vec<Module>> {
    let mut done = BTreeSet::new();
    imports.keys().find_map(|start| follow(start, imports, &mut Vec::new(), &mut done))
}

fn follow(
    at: &Module,
    imports: &BTreeMap<Module, BTreeSet<Module>>,
    way: &mut Vec<Module>,
    done: &mut BTreeSet<Module>,
) -> Option<Vec<Module>> {
    if let Some(i) = way.iter().position(|module| module == at) {
        return Some(way[i..].to_vec());
    }
    if !done.insert(at.clone()) {
        return None;
    }
    way.push(at.clone());
    let found = imports[at].iter().find_map(|next| follow(next, imports, way, done));
    way.pop();
    found
}
