//! Formats a session as Markdown, for GitHub and other readers.

use std::fmt::Write as _;
use std::ops::Range;

use epitome_model::{
    Bytes, Call, FieldRole, Output, Part, Role, Source, Text, ToolKind, is_left_by_recipe, plural,
    short,
};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::call::{self, FileChange, Line, Outcome};
use crate::link::is_safe;
use crate::shorten::{Limit, cut};
use crate::story::{StoryItem, StoryItemKind};
use crate::visible::one_line;
use crate::{Detail, Facts, Story, time, todo, visible};

/// The maximum number of times that a text is checked again after parts of it were escaped.
const ROUNDS: usize = 6;

/// A session as Markdown. Messages keep their Markdown, without HTML, images and unsafe links;
/// nothing in a message affects the text after it.
pub fn markdown(story: &Story<'_>) -> String {
    let mut page = Page { story, text: String::new() };
    page.head();
    for turn in &story.turns {
        let prompt = story.prompt(turn);
        let when = turn.time.as_deref().and_then(time::parse).map(time::display);
        let _ = match turn.number {
            0 => write!(page.text, "\n## Before the first words"),
            number => write!(page.text, "\n## {number}"),
        };
        page.text.extend(when.map(|when| format!(" · {when}")));
        page.text.push('\n');
        for piece in &story.pieces[prompt.clone()] {
            page.piece(piece);
        }
        let steps = story.steps(turn);
        page.steps(&story.pieces[steps.clone()]);
        for piece in &story.pieces[steps.end..turn.pieces.end] {
            page.piece(piece);
        }
    }
    page.text
}

struct Page<'s, 'a> {
    story: &'s Story<'a>,
    text: String,
}

impl<'a> Page<'_, 'a> {
    fn head(&mut self) {
        let facts = Facts::from_story(self.story);
        let _ = writeln!(self.text, "# {}\n", escaped(&facts.title));
        let mut parts = vec![facts.agent.clone()];
        parts.extend(facts.models.iter().map(|model| escaped(&visible(model))));
        if let Some(chosen) = self.story.chosen_in_words() {
            // The other figures are about the whole session, not about the chosen turns, so they
            // are left out.
            parts.push(chosen);
            let _ = writeln!(self.text, "{}", parts.join(" · "));
            return;
        }
        parts.extend(facts.started.as_deref().and_then(time::parse).map(time::display));
        parts.push(plural(facts.turns, "turn"));
        parts.push(plural(facts.calls, "tool call"));
        if facts.spent.requests > 0 {
            let spent = facts.spent;
            parts.extend(spent.output.map(|output| format!("{output} tokens written")));
            parts.push(format!("{} tokens read", spent.input));
        }
        parts.extend(facts.cost_in_words());
        if !facts.changes.is_empty() {
            let changes = facts.changes;
            let added = changes.added;
            let removed = changes.removed;
            let files = changes.files;
            let files = plural(files, "file");
            parts.push(format!("+{added} −{removed} lines in {files}"));
        }
        let _ = writeln!(self.text, "{}", parts.join(" · "));
        let past = self.story.session.past.filter(|past| !past.is_empty());
        if let Some(past) = past {
            let _ = writeln!(self.text, "\n> {}", escaped(&visible(&past.sentences().join(" "))));
        }
    }

    fn steps(&mut self, steps: &[StoryItem<'_>]) {
        if steps.is_empty() {
            return;
        }
        if self.story.session.detail == Detail::Calls {
            self.text.push('\n');
            for piece in steps {
                self.piece(piece);
            }
            return;
        }
        let steps_in_all = plural(steps.len() as u64, "step");
        let _ = writeln!(self.text, "\n<details><summary>{steps_in_all}</summary>");
        for piece in steps {
            self.piece(piece);
        }
        self.text.push_str("\n</details>\n");
    }

    fn piece(&mut self, piece: &StoryItem<'_>) {
        let source = self.source();
        let read = |text: &Text| text.read(source).into_owned();
        match piece.what {
            StoryItemKind::Words(text) => match piece.entry.role {
                Role::User => {
                    let _ = writeln!(self.text, "\n**User**\n\n{}", quoted(&read(text)));
                }
                Role::Assistant | Role::Tool => {
                    let _ = writeln!(self.text, "\n**Assistant**\n\n{}", prose(&read(text)));
                }
                Role::System => self.folded("<i>System message</i>", &read(text)),
            },
            StoryItemKind::Summary(text) => {
                self.folded("<b>The conversation before was summarised</b>", &read(text));
            }
            StoryItemKind::Thinking(thinking) => {
                if let Some(text) = &thinking.text {
                    self.folded("<i>Thinking</i>", &read(text));
                }
            }
            StoryItemKind::Call(call, output) => match self.story.session.detail {
                Detail::Calls => {
                    let _ = writeln!(self.text, "- {}", self.line(call, output, html));
                }
                Detail::Conversation | Detail::Steps | Detail::Full => self.call(call, output),
            },
            StoryItemKind::Result(output) => {
                self.text.push_str("\n<details><summary>A result without a call</summary>\n");
                self.output(None, output);
                self.text.push_str("\n</details>\n");
            }
            StoryItemKind::Image(image) => self.picture(&image.media, image.data.len()),
            StoryItemKind::Opaque(span) => {
                self.text.push_str("\n<details><summary>Something else</summary>\n");
                self.code(&String::from_utf8_lossy(&source.at(span)), "json");
                self.text.push_str("\n</details>\n");
            }
        }
    }

    /// The name, target and outcome of a call as one line of HTML. `html` escapes a text.
    fn line(&self, call: &Call, output: Option<&Output>, html: fn(&str) -> String) -> String {
        let source = self.source();
        let mut line = format!("<b>{}</b>", html(&visible(&short(&call.name, 60))));
        if let Some(target) =
            call::target(call, self.story.session.cwd(), self.story.session.source)
        {
            let _ = write!(line, " <code>{}</code>", html(&target));
        }
        let (added, removed) = call::counts(call, source);
        if added + removed > 0 {
            let _ = write!(line, " +{added} −{removed}");
        }
        match output.map(|output| call::outcome(output, source)) {
            Some(Outcome::Left(text)) => {
                let _ = write!(line, " · {}", html(&text));
            }
            Some(Outcome::Failed) => line.push_str(" · failed"),
            Some(Outcome::Pictures(_)) => line.push_str(" · pictures"),
            Some(Outcome::Lines(lines)) => {
                let _ = write!(line, " · {lines}");
            }
            None => line.push_str(" · no result"),
        }
        line
    }

    fn call(&mut self, call: &Call, output: Option<&Output>) {
        let source = self.source();
        let _ = writeln!(
            self.text,
            "\n<details><summary>{}</summary>",
            self.line(call, output, in_block)
        );
        let arguments = call::arguments(call, source);
        let list = arguments.as_ref().filter(|_| call.kind == ToolKind::Todo).and_then(todo::list);
        match list {
            Some(list) => self.todo(&list),
            None => self.input(call, arguments.as_ref()),
        }
        if let Some(address) = self.story.session.sub_agents.get(&*call.id) {
            let _ = writeln!(self.text, "\n[What the sub-agent did]({address})");
        }
        if let Some(output) = output {
            self.output(Some(call), output);
        }
        self.text.push_str("\n</details>\n");
    }

    fn todo(&mut self, list: &[(todo::State, String)]) {
        self.text.push('\n');
        for (state, text) in list {
            let mark = match state {
                todo::State::Open => "[ ]",
                todo::State::Active => "[ ] →",
                todo::State::Done => "[x]",
            };
            let _ = writeln!(self.text, "- {mark} {}", escaped(&one_line(text)));
        }
    }

    fn input(&mut self, call: &Call, arguments: Option<&serde_json::Value>) {
        let source = self.source();
        for (name, value) in call::rest(call, arguments, source) {
            self.named(&name, &value);
        }
        if call.kind.changes_file() {
            for change in call::changes(&call.fields, source) {
                self.change(&change, call);
            }
        } else {
            for field in &call.fields {
                let text = field.text.read(source).into_owned();
                match field.role {
                    FieldRole::Command => self.code(&text, "sh"),
                    FieldRole::Prompt => {
                        let _ = writeln!(self.text, "\n{}", quoted(&text));
                    }
                    _ => self.named(&field.name, &text),
                }
            }
        }
        if let Some(text) = call::unknown(call, arguments, source) {
            self.code(&text, "");
        }
    }

    fn change(&mut self, change: &FileChange, call: &Call) {
        match change {
            FileChange::Content(text) => {
                let path = call.target.as_ref().map(|it| it.read(self.source()).into_owned());
                self.code(text, &extension(path.as_deref().unwrap_or("")));
            }
            FileChange::Patch(text) => self.code(text, "diff"),
            FileChange::Named(name, text) => self.named(name, text),
            FileChange::Becomes(old, new) if old.len() + new.len() < 100 => {
                let old = escaped(&one_line(old));
                let new = escaped(&one_line(new));
                let _ = writeln!(self.text, "\n{old} → {new}");
            }
            FileChange::Becomes(old, new) => {
                self.code(old, "");
                self.code(new, "");
            }
            FileChange::Lines(lines) => {
                let lines: Vec<String> = lines
                    .iter()
                    .map(|line| match line {
                        Line::Same(line) => format!("  {line}"),
                        Line::Added(line) => format!("+ {line}"),
                        Line::Removed(line) => format!("- {line}"),
                        Line::Gap => "@@".to_owned(),
                    })
                    .collect();
                self.code(&lines.join("\n"), "diff");
            }
        }
    }

    fn output(&mut self, call: Option<&Call>, output: &Output) {
        let source = self.source();
        for part in &output.parts {
            match part {
                Part::Text(text) => {
                    let text = text.read(source);
                    // The summary line of the call usually has a short stub already.
                    let is_in_line = call.is_some() && text.len() < 80 && is_left_by_recipe(&text);
                    if text.trim().is_empty() || is_in_line {
                        continue;
                    }
                    let is_read = call.is_some_and(|call| call.kind == ToolKind::Read);
                    let path = call.and_then(|call| call.target.as_ref());
                    if is_read && !output.error {
                        let path = path.map(|it| it.read(source).into_owned());
                        let language = extension(path.as_deref().unwrap_or(""));
                        if output.numbered {
                            self.code(&call::without_numbers(&text), &language)
                        } else {
                            self.code(&text, &language)
                        }
                    } else {
                        self.code(&plain_output(&text), "");
                    }
                }
                Part::Image(image) => self.picture(&image.media, image.data.len()),
                Part::Opaque(span) => self.code(&String::from_utf8_lossy(&source.at(*span)), ""),
            }
        }
    }

    fn picture(&mut self, media: &str, base64: u64) {
        let size = Bytes(base64 * 3 / 4);
        let _ = writeln!(self.text, "\n*a picture ({}, {size})*", escaped(&one_line(media)));
    }

    fn folded(&mut self, summary: &str, text: &str) {
        let _ = writeln!(
            self.text,
            "\n<details><summary>{summary}</summary>\n\n{}\n\n</details>",
            quoted(text)
        );
    }

    fn named(&mut self, name: &str, text: &str) {
        let name = escaped(&one_line(name));
        if text.len() < 100 && !text.contains(['\n', '`']) {
            let _ = writeln!(self.text, "\n{name}: `{}`", visible(text).trim());
        } else {
            let _ = writeln!(self.text, "\n{name}:");
            self.code(text, "");
        }
    }

    /// A code block, with fences that are longer than any run of backticks in the text.
    fn code(&mut self, text: &str, language: &str) {
        let limit = match self.story.session.detail {
            Detail::Full => Limit { text: 1 << 20, line: 64 << 10 },
            Detail::Steps | Detail::Calls | Detail::Conversation => {
                Limit { text: 16 << 10, line: 2 << 10 }
            }
        };
        let shown = cut(text, limit);
        let mut whole = shown.head;
        if let Some(gap) = shown.gap {
            let _ = write!(
                whole,
                "{}… {gap} …\n{}",
                if whole.ends_with('\n') { "" } else { "\n" },
                shown.tail
            );
        }
        let whole = visible(&whole);
        let fence = "`".repeat(longest_run(&whole).max(2) + 1);
        let end = if whole.ends_with('\n') { "" } else { "\n" };
        let _ = writeln!(self.text, "\n{fence}{language}\n{whole}{end}{fence}");
    }

    fn source(&self) -> &'a dyn Source {
        self.story.session.source
    }
}

/// A text without the terminal sequences that set a style.
fn plain_output(text: &str) -> String {
    if text.contains(['\u{1b}', '\r']) {
        crate::ansi::runs(text).into_iter().map(|run| run.text).collect()
    } else {
        text.to_owned()
    }
}

fn extension(path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let fits = extension.len() <= 12 && extension.chars().all(|c| c.is_ascii_alphanumeric());
    if fits { extension.to_owned() } else { String::new() }
}

fn longest_run(text: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// A text for one line, escaped so that it has no Markdown syntax. Characters that have no meaning
/// at their place are not escaped, so that the file is readable as text.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let is_link = is_link(text);
    let mut before = None;
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        let begins = before.is_none_or(char::is_whitespace);
        let next = rest.chars().next();
        let means_something = match c {
            '\\' | '`' | '*' | '~' => true,
            '[' | ']' => is_link,
            '!' => next == Some('['),
            // Begins a heading or a quotation.
            '#' | '>' => begins || next.is_none(),
            // Begins a character reference.
            '&' => is_reference(rest),
            // Within a word, `_` does not mark emphasis, and need not be escaped.
            '_' => {
                !(before.is_some_and(char::is_alphanumeric)
                    && next.is_some_and(char::is_alphanumeric))
            }
            _ => false,
        };
        match c {
            // Not all readers support `\<`.
            '<' => escaped.push_str("&lt;"),
            _ if means_something => escaped.extend(['\\', c]),
            _ => escaped.push(c),
        }
        before = Some(c);
    }
    escaped
}

/// Whether `rest`, the text after an `&`, makes it a character reference: a name or a number, and
/// then a semicolon.
fn is_reference(rest: &str) -> bool {
    let name = rest.trim_start_matches(|c: char| c == '#' || c.is_ascii_alphanumeric());
    name.len() < rest.len() && name.starts_with(';')
}

/// Whether Markdown may parse brackets in a text as a link, a reference, a definition or a
/// footnote. A single pair of brackets is a reference only if a definition for it exists, and a
/// text cannot contain one.
fn is_link(text: &str) -> bool {
    ["](", "][", "]:", "[^", "[["].iter().any(|link| text.contains(link))
}

/// Escapes a text in an HTML block, where Markdown is not parsed. An HTML block begins with a line
/// that starts with a tag such as `<details>`.
fn in_block(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Escapes a text between inline HTML tags, where readers parse both HTML and Markdown. Brackets
/// that Markdown takes for text, as in `[output: 16 lines]`, are not escaped, so that a search in
/// the file finds them.
fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let is_link = is_link(text);
    for c in text.chars() {
        match c {
            '[' | ']' if !is_link => escaped.push(c),
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '!' | '~' | '|' | '$' | '"' => {
                let _ = write!(escaped, "&#{};", u32::from(c));
            }
            _ => escaped.push(c),
        }
    }
    escaped
}

/// A message as a quotation. Elements that the text leaves open at its end, such as a code block,
/// end with the quotation.
fn quoted(text: &str) -> String {
    let text = neutral(text);
    let lines = text.trim_end().lines().map(|line| format!("> {line}").trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// The text of a message as Markdown, without HTML and unsafe links (see [`neutral`]). If the text
/// leaves an element open at its end, for example a code block without its last fence, it is
/// returned as a quotation: otherwise the text after it in the file would become part of that
/// element.
fn prose(text: &str) -> String {
    const END: &str = "the end of it";
    let text = neutral(text);
    let closed = format!("{}\n\n{END}\n", text.trim_end());
    let mut depth = 0;
    let mut last = None;
    for event in Parser::new_ext(&closed, options()) {
        match event {
            Event::Start(tag) => {
                depth += 1;
                last = (depth == 1).then_some(tag == Tag::Paragraph);
            }
            Event::End(_) => depth -= 1,
            Event::Text(text) if depth == 1 && &*text == END => {}
            _ if depth == 1 => last = last.map(|_| false),
            _ => {}
        }
    }
    match last {
        Some(true) => text.trim_end().to_owned(),
        Some(false) | None => quoted(&text),
    }
}

/// Markdown without HTML, images and unsafe links, with invisible characters made visible. If the
/// text still has some of these after [`ROUNDS`] rounds of escaping, it becomes a code block.
///
/// A `<` that could begin a tag becomes `&lt;`: some readers accept more as a tag than CommonMark
/// does (`<svg/onload=…>`), and not all support `\<`.
fn neutral(text: &str) -> String {
    let mut text = visible(text);
    for _ in 0..ROUNDS {
        let escapes = escapes(&text);
        if escapes.is_empty() {
            return text;
        }
        let mut fixed = String::with_capacity(text.len() + escapes.len() * 3);
        let mut from = 0;
        for at in escapes {
            fixed.push_str(&text[from..at]);
            from = at;
            if text[at..].starts_with('<') {
                let slashes = text[..at].bytes().rev().take_while(|&byte| byte == b'\\').count();
                if slashes % 2 == 1 {
                    fixed.pop();
                }
                fixed.push_str("&lt;");
                from += 1;
            } else {
                fixed.push('\\');
            }
        }
        fixed.push_str(&text[from..]);
        text = fixed;
    }
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    format!("{fence}\n{text}\n{fence}")
}

/// The positions of characters that must be escaped.
fn escapes(text: &str) -> Vec<usize> {
    let parser = Parser::new_ext(text, options());
    // The definition of a link in a text would apply to the whole document.
    let definitions = parser.reference_definitions().iter();
    let mut escapes: Vec<usize> = definitions.map(|(_, it)| it.span.start).collect();
    let mut in_code = false;
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Html(_) | Event::InlineHtml(_) => {
                let tags = text[range.clone()].match_indices('<').map(|(at, _)| range.start + at);
                escapes.extend(tags);
            }
            Event::Start(Tag::Image { .. }) => escapes.push(range.start),
            Event::Start(Tag::Link { dest_url, .. }) if !is_safe(&dest_url) => {
                escapes.push(range.start);
            }
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(_) if !in_code => escapes.extend(openings(text, range)),
            _ => {}
        }
    }
    escapes.sort_unstable();
    escapes.dedup();
    escapes
}

/// Each `<` in a range that a Markdown reader could take for the beginning of a tag.
fn openings(text: &str, range: Range<usize>) -> impl Iterator<Item = usize> {
    let places = text[range.clone()].match_indices('<');
    places.map(move |(at, _)| range.start + at).filter(|at| {
        let next = text.as_bytes().get(at + 1);
        next.is_some_and(|byte| byte.is_ascii_alphabetic() || b"/!?".contains(byte))
    })
}

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod of_samples;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_code_can_begin_a_tag() {
        let cases = [
            ("<svg/onload=alert(1)>", "&lt;svg/onload=alert(1)>"),
            ("a <b>bold</b> <!-- x --> <?php", "a &lt;b>bold&lt;/b> &lt;!-- x --> &lt;?php"),
            ("<img src=x\nonerror=alert(1)", "&lt;img src=x\nonerror=alert(1)"),
            ("1 < 2, a <- b, <3", "1 < 2, a <- b, <3"),
            (
                "`<svg/x>` stays, <https://a.example> too",
                "`<svg/x>` stays, <https://a.example> too",
            ),
            ("```\n<svg/x>\n```", "```\n<svg/x>\n```"),
            ("\\<svg/x> \\\\<svg/x>", "&lt;svg/x> \\\\&lt;svg/x>"),
        ];
        for (text, expect) in cases {
            assert_eq!(neutral(text), expect);
        }
    }

    #[test]
    fn a_line_is_escaped_where_a_character_means_something() {
        for (text, expect) in [
            ("<b> & [x]", "&lt;b> & [x]"),
            ("max_output_tokens", "max_output_tokens"),
            ("_a_ *b* `c` ~d~", "\\_a\\_ \\*b\\* \\`c\\` \\~d\\~"),
            ("a|b [c] #1", "a|b [c] \\#1"),
            ("# a #", "\\# a \\#"),
            ("> a", "\\> a"),
            ("a -> b", "a -> b"),
            ("&amp; & R&D &#38;", "\\&amp; & R&D \\&#38;"),
            ("[a](b) ![c]", "\\[a\\](b) \\!\\[c\\]"),
            ("wow!", "wow!"),
        ] {
            assert_eq!(escaped(text), expect);
        }
        assert_eq!(in_block("a_b | c & <d>"), "a_b | c &amp; &lt;d&gt;");
    }

    #[test]
    fn brackets_are_escaped_only_where_markdown_reads_a_link() {
        let plain = ["[output: 16 lines]", "a[0] = b[1]", "grep [a-z] (x)"];
        for text in plain {
            assert_eq!(html(text), text);
        }
        for text in ["[a](b)", "![a](b)", "[a][b]", "[a]: b", "[^1]", "[[a]]"] {
            assert!(!html(text).contains(['[', ']']), "{}", html(text));
            let page = html(text);
            let is_text = |event: Event<'_>| !matches!(event, Event::Start(Tag::Link { .. }));
            assert!(Parser::new_ext(&page, options()).all(is_text), "{page}");
        }
    }

    #[test]
    fn what_a_text_begins_and_does_not_end_is_a_quotation() {
        let cases = [
            ("A *word*.", "A *word*."),
            ("```\nopen", "> ```\n> open"),
            ("```\nopen\n```", "```\nopen\n```"),
            ("> quote", "> quote"),
            ("- one\n  - two", "- one\n  - two"),
        ];
        for (text, expect) in cases {
            assert_eq!(prose(text), expect, "{text:?}");
        }
        assert_eq!(quoted("one\n\ntwo\n"), "> one\n>\n> two");
    }

    #[test]
    fn pictures_definitions_and_links_that_run_something_are_text() {
        let cases = [
            ("![x](http://e.com/a.png)", "\\![x](http://e.com/a.png)"),
            ("[x](javascript:alert(1))", "\\[x](javascript:alert(1))"),
            ("[x](https://e.com)", "[x](https://e.com)"),
            ("[x]: https://e.com", "\\[x]: https://e.com"),
        ];
        for (text, expect) in cases {
            assert_eq!(neutral(text), expect, "{text}");
        }
    }

    #[test]
    fn a_language_is_a_short_extension_of_letters_and_digits() {
        let cases = [
            ("/p/a.rs", "rs"),
            ("C:\\p\\a.test.tsx", "tsx"),
            ("/p.d/Makefile", ""),
            ("/p/a.r`s", ""),
            ("/p/a.abcdefghijklm", ""),
        ];
        for (path, expect) in cases {
            assert_eq!(extension(path), expect, "{path}");
        }
    }

    #[test]
    fn the_longest_run_of_backticks_is_counted() {
        for (text, expect) in [("", 0), ("a`b``c`", 2), ("````", 4)] {
            assert_eq!(longest_run(text), expect, "{text}");
        }
    }
}
