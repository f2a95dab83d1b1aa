//! Command lines that a message offers. The user can paste them into a shell as they stand.

use nearprint_fault::quoted;

/// Returns a command line of nearprint. A word that a shell would take apart is quoted.
pub fn command_line<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let mut line = "nearprint".to_owned();
    for word in words {
        line.push(' ');
        line.push_str(&quoted(word.as_ref()));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::command_line;

    #[test]
    fn words_that_a_shell_would_take_apart_are_quoted() {
        let line = command_line(["run", "-c", "my job.toml", "--set", "a=$b", "it's", "", "s3://b/k", "文"]);
        assert_eq!(line, r"nearprint run -c 'my job.toml' --set 'a=$b' 'it'\''s' '' s3://b/k 文");
    }
}
