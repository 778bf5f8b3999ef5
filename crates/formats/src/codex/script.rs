//! Finds string literals in a script of Codex's code mode: JavaScript that calls `tools.<name>(…)`.
//!
//! This is not a parser: it knows enough of ECMAScript's tokens to find literals, and the call and
//! member that each belongs to. A misread script loses nothing: edits replace whole literals, and
//! all other text stays as it is.

use std::ops::Range;

/// A string literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// The range of the literal, quotes included.
    pub place: Range<usize>,
    /// The range of the name of the tool whose arguments contain the literal.
    pub tool: Option<Range<usize>>,
    /// The range of the key in an object whose value is the literal.
    pub member: Option<Range<usize>>,
}

/// The literals of a script, and the names of the tools it calls, in order.
pub fn literals(script: &[u8]) -> (Vec<Literal>, Vec<Range<usize>>) {
    let mut scan = Scan { script, pos: 0, last: Last::Nothing, open: Vec::new(), key: None };
    let mut literals = Vec::new();
    let mut tools = Vec::new();
    while let Some(token) = scan.token() {
        match token {
            Token::Literal(place) => {
                let member = scan.key.take();
                let tool = scan.open.iter().rev().find_map(Clone::clone);
                literals.push(Literal { place, tool, member });
            }
            Token::Call(name) => tools.push(name),
        }
    }
    (literals, tools)
}

enum Token {
    Literal(Range<usize>),
    Call(Range<usize>),
}

/// The previous token. It determines what a slash, a colon or a bracket after it means.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Last {
    Nothing,
    Word(Range<usize>),
    Text(Range<usize>),
    /// The name after `tools.`.
    Tool(Range<usize>),
    Mark(u8),
}

struct Scan<'a> {
    script: &'a [u8],
    pos: usize,
    last: Last,
    /// The open brackets. With the parenthesis of a call of a tool, the name of the tool.
    open: Vec<Option<Range<usize>>>,
    key: Option<Range<usize>>,
}

impl Scan<'_> {
    /// Advances to the next literal or call; `None` at the end of the script.
    fn token(&mut self) -> Option<Token> {
        while let Some(&byte) = self.script.get(self.pos) {
            let start = self.pos;
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => self.pos += 1,
                b'/' if self.comment() => {}
                b'/' if self.may_be_regex() => self.regex(),
                b'"' | b'\'' | b'`' => {
                    if let Some(place) = self.text(byte) {
                        return Some(Token::Literal(place));
                    }
                }
                b'(' => {
                    self.pos += 1;
                    let tool = match &self.last {
                        Last::Tool(name) => Some(name.clone()),
                        _ => None,
                    };
                    self.open.push(tool.clone());
                    self.last = Last::Mark(byte);
                    if let Some(name) = tool {
                        return Some(Token::Call(name));
                    }
                }
                b'{' | b'[' => {
                    self.pos += 1;
                    self.open.push(None);
                    self.last = Last::Mark(byte);
                    self.key = None;
                }
                b')' | b'}' | b']' => {
                    self.pos += 1;
                    self.open.pop();
                    self.last = Last::Mark(byte);
                    self.key = None;
                }
                b':' => {
                    self.pos += 1;
                    self.key = match &self.last {
                        Last::Word(name) | Last::Text(name) => Some(name.clone()),
                        Last::Nothing | Last::Tool(_) | Last::Mark(_) => None,
                    };
                    self.last = Last::Mark(byte);
                }
                _ if is_word(byte) => {
                    let len = self.script[start..].iter().take_while(|b| is_word(**b)).count();
                    self.pos += len;
                    self.last = self.word(start..self.pos);
                }
                _ => {
                    self.pos += 1;
                    if byte == b',' || byte == b';' {
                        self.key = None;
                    }
                    self.last = Last::Mark(byte);
                }
            }
        }
        None
    }

    /// The token for the word at `place`: the name of a tool after `tools.`, and otherwise a plain
    /// word.
    fn word(&self, place: Range<usize>) -> Last {
        if self.script[..place.start].ends_with(b"tools.") {
            Last::Tool(place)
        } else {
            Last::Word(place)
        }
    }

    /// The range of the string literal that begins at the current position. `None` if the literal
    /// is not closed, is a key of an object, is a template with substitutions, or is a template
    /// with a tag.
    fn text(&mut self, quote: u8) -> Option<Range<usize>> {
        let start = self.pos;
        let tagged = quote == b'`' && matches!(self.last, Last::Word(_) | Last::Tool(_));
        let mut whole = !tagged;
        self.pos += 1;
        while let Some(&byte) = self.script.get(self.pos) {
            match byte {
                b'\\' => self.pos += 1,
                b'\n' if quote != b'`' => break,
                b'$' if quote == b'`' && self.script.get(self.pos + 1) == Some(&b'{') => {
                    whole = false;
                }
                _ if byte == quote => {
                    self.pos += 1;
                    let place = start..self.pos;
                    let before = std::mem::replace(&mut self.last, Last::Text(place.clone()));
                    // A quoted name before a colon is a key, not a text.
                    let rest = self.script[self.pos..].trim_ascii_start();
                    let is_key =
                        rest.first() == Some(&b':') && matches!(before, Last::Mark(b'{' | b','));
                    if !whole || is_key {
                        self.key = None;
                        return None;
                    }
                    return Some(place);
                }
                _ => {}
            }
            self.pos += 1;
        }
        // The line, or the script in the case of a template, ends before the literal does.
        self.pos = self.script.len().min(self.pos);
        self.last = Last::Mark(quote);
        None
    }

    /// Skips a comment if one begins at the current position. Returns whether one did.
    fn comment(&mut self) -> bool {
        let rest = &self.script[self.pos..];
        let len = if rest.starts_with(b"//") {
            memchr::memchr(b'\n', rest).unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            memchr::memmem::find(&rest[2..], b"*/").map_or(rest.len(), |end| end + 4)
        } else {
            return false;
        };
        self.pos += len;
        true
    }

    /// Whether a slash at the current position may begin a regular expression. A slash after a
    /// value is a division.
    fn may_be_regex(&self) -> bool {
        match &self.last {
            Last::Nothing => true,
            Last::Word(word) => {
                matches!(&self.script[word.clone()], b"return" | b"typeof" | b"await" | b"of")
            }
            Last::Text(_) | Last::Tool(_) => false,
            Last::Mark(mark) => !matches!(mark, b')' | b']' | b'}'),
        }
    }

    fn regex(&mut self) {
        let start = self.pos;
        let mut at = start + 1;
        let mut in_class = false;
        self.last = Last::Mark(b')');
        while let Some(&byte) = self.script.get(at) {
            match byte {
                b'\\' => at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'\n' => break,
                b'/' if !in_class => {
                    self.pos = at + 1;
                    return;
                }
                _ => {}
            }
            at += 1;
        }
        // The expression has no closing slash on its line, so it is not a regular expression.
        self.pos = start + 1;
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, expect: &[(&str, Option<&str>, Option<&str>)], calls: &[&str]) {
        let (found, tools) = literals(script.as_bytes());
        let text = |place: &Range<usize>| &script[place.clone()];
        let found: Vec<_> = found
            .iter()
            .map(|it| (text(&it.place), it.tool.as_ref().map(text), it.member.as_ref().map(text)))
            .collect();
        assert_eq!(found, expect, "{script}");
        assert_eq!(tools.iter().map(text).collect::<Vec<_>>(), calls, "{script}");
    }

    #[test]
    fn literals_know_their_tool_and_their_member() {
        let exec = Some("exec_command");
        check(
            r#"const r = await tools.exec_command({"cmd": "ls -R", 'workdir': '/p', login: true});
               text(r.output); if (r.exit_code) text('exit code ' + r.exit_code);"#,
            &[
                (r#""ls -R""#, exec, Some(r#""cmd""#)),
                ("'/p'", exec, Some("'workdir'")),
                ("'exit code '", None, None),
            ],
            &["exec_command"],
        );
        check(
            "text(await tools.apply_patch(`*** Begin\\`\n`)); x(tools.view_image({path: \"x\"}))",
            &[
                ("`*** Begin\\`\n`", Some("apply_patch"), None),
                ("\"x\"", Some("view_image"), Some("path")),
            ],
            &["apply_patch", "view_image"],
        );
    }

    #[test]
    fn what_is_no_literal_is_none() {
        check("// \"a\"\n/* 'b' */ /[\"/]'/.test(x) / \"c\"", &[("\"c\"", None, None)], &[]);
        check("`a ${x}` + String.raw`b`", &[], &[]);
        check("'open\n\"closed\"", &[("\"closed\"", None, None)], &[]);
        check("a ? \"b\" : 'c'", &[("\"b\"", None, None), ("'c'", None, Some("\"b\""))], &[]);
        check("'", &[], &[]);
        check("`\\", &[], &[]);
    }
}
