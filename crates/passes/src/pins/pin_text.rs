//! Writes pins into a summary, and reads them from one.

use super::{Pin, PinKind};

/// The heading above the pins in a summary.
pub const HEADING: &str = "## What sets rules, word for word";

/// The text of pins in a summary; `None` if there are no pins. Each pin states its number of lines,
/// so that no line of the text is taken for the end of the pin.
pub fn pinned_text(pins: &[Pin]) -> Option<String> {
    let tagged = pins.iter().map(|Pin { kind, name, source, text, .. }| {
        let what = kind.word();
        let lines = text.lines().count();
        let name = escaped(name);
        let from = source.word();
        let text = text.lines().collect::<Vec<_>>().join("\n");
        format!(
            "<pinned what=\"{what}\" name=\"{name}\" from=\"{from}\" lines=\"{lines}\">\n{text}\n\
</pinned>"
        )
    });
    let tagged: Vec<String> = tagged.collect();
    (!tagged.is_empty()).then(|| format!("{HEADING}\n{}", tagged.join("\n")))
}

/// The pins in the text of a summary: the kind, name and text of each.
pub fn pinned_in(summary: &str) -> Vec<(PinKind, String, String)> {
    let mut found = Vec::new();
    let mut lines = summary.lines().skip_while(|line| line.trim() != HEADING).skip(1);
    while let Some((kind, name, n)) = lines.next().and_then(opening) {
        let text: Vec<&str> = lines.by_ref().take(n).collect();
        if lines.next().map(str::trim) != Some("</pinned>") {
            break;
        }
        found.push((kind, name, text.join("\n")));
    }
    found
}

/// Parses the line before a pin: its kind, name and number of lines. `None` if it is not such a
/// line. The source of the pin is not read, because older versions did not write it.
fn opening(line: &str) -> Option<(PinKind, String, usize)> {
    let (what, rest) = line.trim().strip_prefix("<pinned what=\"")?.split_once("\" name=\"")?;
    let (name, rest) = rest.split_once('"')?;
    let (_, rest) = rest.split_once("lines=\"")?;
    let kind = PinKind::ALL.into_iter().find(|kind| kind.word() == what)?;
    Some((kind, unescaped(name), rest.strip_suffix("\">")?.parse().ok()?))
}

/// Characters that would end a name or its line, each with its replacement.
const ESCAPES: [(&str, &str); 6] =
    [("&", "&amp;"), ("\"", "&quot;"), ("<", "&lt;"), (">", "&gt;"), ("\n", " "), ("\r", " ")];

fn escaped(name: &str) -> String {
    ESCAPES.into_iter().fold(name.to_owned(), |name, (what, by)| name.replace(what, by))
}

fn unescaped(name: &str) -> String {
    let back = ESCAPES.into_iter().rev().filter(|(_, by)| *by != " ");
    back.fold(name.to_owned(), |name, (what, by)| name.replace(by, what))
}

#[cfg(test)]
mod tests {
    use super::super::PinSource;
    use super::*;

    #[test]
    fn what_is_put_into_a_summary_is_read_from_it() {
        let pin = |kind, name: &str, text: &str| Pin {
            item: 0,
            block: 0,
            kind,
            name: name.to_owned(),
            source: PinSource::File,
            text: text.to_owned(),
        };
        let pins = [
            pin(PinKind::RuleFile, "AGENTS.md", "# Rules\n\n</pinned>\n- never push"),
            pin(PinKind::Marked, "the user", "x < 3"),
            pin(PinKind::Skill, "x\" lines=\"0\"><pinned what=\"rules\" name=\"&quot;", "y"),
        ];
        let text = pinned_text(&pins).expect("there are pins");
        let expect: Vec<_> =
            pins.iter().map(|it| (it.kind, it.name.clone(), it.text.clone())).collect();
        assert_eq!(pinned_in(&format!("[Summary]\n\n{text}\n\n## More\nwords")), expect);
        let old = text.replace(" from=\"file\"", "");
        assert_eq!(pinned_in(&old), expect, "as older versions wrote it");
        assert_eq!(pinned_text(&[]), None);
        for text in ["", "## More", HEADING, "<pinned what=\"rules\" name=\"a\" lines=\"1\">"] {
            assert_eq!(pinned_in(text), vec![], "{text}");
        }
    }
}
