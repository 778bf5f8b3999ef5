//! Text that the user put between the marks `<pin>` and `</pin>`, so that every compaction keeps
//! it.

/// The opening mark.
pub const OPEN: &str = "<pin>";
/// The closing mark.
pub const CLOSE: &str = "</pin>";

/// The texts between marks, in order. An opening mark without a closing mark is plain text.
pub fn between_marks(text: &str) -> impl Iterator<Item = &str> {
    text.split(OPEN).skip(1).filter_map(|part| Some(part.split_once(CLOSE)?.0.trim()))
}

/// The texts that the user marked. The opening mark must begin a line, and the closing mark must
/// end one. Marks are ignored in text that the user only passes on: within a line, in a code block,
/// in a quotation, indented, or in an element that an agent or another program added. All marks are
/// ignored in a text that contains pins as epitome writes them into a digest or a summary.
pub fn own_marks(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if !text.contains(OPEN) || is_copy_of_ours(text) {
        return found;
    }
    let mut fence: Option<&str> = None;
    let mut element: Option<String> = None;
    let mut open: Option<String> = None;
    for (at, line) in lines_of(text) {
        if let Some(marked) = &mut open {
            match line.split_once(CLOSE) {
                Some((last, rest)) => {
                    marked.push_str(last);
                    let marked = open.take().unwrap_or_default();
                    found.extend(rest.trim().is_empty().then(|| marked.trim().to_owned()));
                }
                None => {
                    marked.push_str(line);
                    marked.push('\n');
                }
            }
            continue;
        }
        let words = line.trim();
        if let Some(mark) = fence {
            fence = (!words.starts_with(mark)).then_some(mark);
            continue;
        }
        if let Some(name) = &element {
            if line.contains(&format!("</{name}>")) {
                element = None;
            }
            continue;
        }
        fence = FENCES.into_iter().find(|mark| words.starts_with(mark));
        if fence.is_some() {
            continue;
        }
        element = opened(line).filter(|name| text[at..].contains(&format!("</{name}>")));
        if element.as_ref().is_some_and(|name| line.contains(&format!("</{name}>"))) {
            element = None;
            continue;
        }
        let Some(rest) = line.strip_prefix(OPEN).filter(|_| element.is_none()) else { continue };
        match rest.split_once(CLOSE) {
            Some((marked, after)) if after.trim().is_empty() => {
                found.push(marked.trim().to_owned())
            }
            Some(_) => {}
            None => open = Some(format!("{rest}\n")),
        }
    }
    found
}

/// The beginnings of the lines that open and close a code block.
const FENCES: [&str; 2] = ["```", "~~~"];

/// Whether a text contains pins as epitome writes them into a digest or a summary.
fn is_copy_of_ours(text: &str) -> bool {
    text.contains("<pinned what=") || text.contains(super::pin_text::HEADING)
}

/// The lines of a text, each with its offset.
fn lines_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let begins = at;
        at += line.len();
        (begins, line.trim_end_matches(['\n', '\r']))
    })
}

/// The name of the element that a line opens. `None` if it opens no element, or opens the mark
/// `<pin>`.
fn opened(line: &str) -> Option<String> {
    let rest = line.trim_start().strip_prefix('<')?;
    let name = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let name: String = name.collect();
    let is_tag = rest[name.len()..].starts_with(['>', ' ']);
    (!name.is_empty() && is_tag && name != "pin").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_between_two_marks_is_taken() {
        for (text, expect) in [
            ("a <pin>b</pin> c <pin>\nd\n</pin>", vec!["b", "d"]),
            ("a <pin>b", vec![]),
            ("a </pin> b <pin>c", vec![]),
            ("<pin>a <pin>b</pin> c</pin>", vec!["b"]),
            ("", vec![]),
        ] {
            assert_eq!(between_marks(text).collect::<Vec<_>>(), expect, "{text}");
        }
    }

    #[test]
    fn marks_of_the_user_are_on_lines_of_their_own() {
        for (text, expect) in [
            ("<pin>a</pin>", vec!["a"]),
            ("Do it.\n<pin>a</pin>\n<pin>\nb\nc\n</pin>\nNow.", vec!["a", "b\nc"]),
            ("<pin>a < b</pin>\r\nx", vec!["a < b"]),
            ("<b>bold</b>\n<pin>a</pin>", vec!["a"]),
            ("<b> no end\n<pin>a</pin>", vec!["a"]),
            ("see <pin>a</pin>", vec![]),
            ("<pin>a</pin> and so on", vec![]),
            ("  <pin>a</pin>", vec![]),
            ("> <pin>a</pin>", vec![]),
            ("```\n<pin>a</pin>\n```\n<pin>b</pin>", vec!["b"]),
            ("```md\n<pin>a</pin>", vec![]),
            ("<bash-stdout>x\n<pin>a</pin>\n</bash-stdout>\n<pin>b</pin>", vec!["b"]),
            ("<task id=\"1\">\n<pin>a</pin></task>", vec![]),
            ("## What sets rules, word for word\n<pin>a</pin>", vec![]),
            ("<pin>no end", vec![]),
        ] {
            assert_eq!(own_marks(text), expect, "{text}");
        }
    }
}
