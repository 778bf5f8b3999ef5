//! Colours in the output of commands: ECMA-48, "Select Graphic Rendition".

/// A run of text in one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) text: String,
    pub(crate) style: Style,
}

/// The style of a run. A page has a CSS class for each part of a style.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    /// The number of a colour, from 0 to 15; `None` for the default colour.
    pub(crate) colour: Option<u8>,
    pub(crate) bold: bool,
    pub(crate) dim: bool,
    pub(crate) italic: bool,
    pub(crate) underlined: bool,
}

impl Style {
    /// The names of the style's CSS classes.
    pub(crate) fn classes(self) -> String {
        let mut classes = Vec::new();
        classes.extend(self.colour.map(|colour| format!("f{colour}")));
        let flags = [(self.bold, "b"), (self.dim, "d"), (self.italic, "i"), (self.underlined, "u")];
        classes.extend(flags.iter().filter(|(on, _)| *on).map(|(_, class)| (*class).to_owned()));
        classes.join(" ")
    }
}

/// Splits a text into runs of one style. Sequences that set a style are removed; other terminal
/// sequences stay visible to the reader. A carriage return becomes a line feed, or is removed if a
/// line feed follows it or the text ends.
pub(crate) fn runs(text: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut style = Style::default();
    let mut rest = text;
    while let Some(at) = rest.find(['\u{1b}', '\r']) {
        push(&mut runs, &rest[..at], style);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix('\r') {
            if !after.starts_with('\n') && !after.is_empty() {
                push(&mut runs, "\n", style);
            }
            rest = after;
        } else if let Some((codes, after)) = rendition(rest) {
            style = changed(style, codes);
            rest = after;
        } else {
            push(&mut runs, &rest[..1], style);
            rest = &rest[1..];
        }
    }
    push(&mut runs, rest, style);
    runs
}

fn push(runs: &mut Vec<Run>, text: &str, style: Style) {
    match runs.last_mut() {
        _ if text.is_empty() => {}
        Some(last) if last.style == style => last.text.push_str(text),
        Some(_) | None => runs.push(Run { text: text.to_owned(), style }),
    }
}

/// Parses `ESC [ codes m`: the codes, and the text after it.
fn rendition(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("\u{1b}[")?;
    let end = inner.find(|c: char| !matches!(c, '0'..='9' | ';' | ':'))?;
    let after = inner[end..].strip_prefix('m')?;
    Some((&inner[..end], after))
}

/// The style after these codes. Codes are separated by `;`. The parameters of one code are
/// separated by `:` (`38:5:196`), or follow as codes of their own (`38;5;196`).
fn changed(mut style: Style, codes: &str) -> Style {
    let mut codes = codes.split(';');
    while let Some(code) = codes.next() {
        match code.split_once(':') {
            Some((code, parameters)) => set_with_parameters(&mut style, code, parameters),
            None => set(&mut style, number(code), &mut codes.by_ref().map(number)),
        }
    }
    style
}

/// A code as a number; 0 if the code is empty or too large.
fn number(code: &str) -> u16 {
    code.parse().unwrap_or(0)
}

fn set_with_parameters(style: &mut Style, code: &str, parameters: &str) {
    let mut numbers: Vec<u16> = parameters.split(':').map(number).collect();
    // Between the 2 and the colour's three components there may be the number of a colour space.
    if numbers[0] == 2 && numbers.len() > 4 {
        numbers.remove(1);
    }
    match number(code) {
        4 => style.underlined = numbers[0] > 0,
        38 => style.colour = extended(&mut numbers.into_iter()).or(style.colour),
        _ => {}
    }
}

/// Sets the style for one code. The parameters of the code, if it has any, are taken from `after`.
fn set(style: &mut Style, code: u16, after: &mut impl Iterator<Item = u16>) {
    match code {
        0 => *style = Style::default(),
        1 => style.bold = true,
        2 => style.dim = true,
        3 => style.italic = true,
        4 => style.underlined = true,
        22 => (style.bold, style.dim) = (false, false),
        23 => style.italic = false,
        24 => style.underlined = false,
        30..=37 => style.colour = u8::try_from(code - 30).ok(),
        90..=97 => style.colour = u8::try_from(code - 90 + 8).ok(),
        39 => style.colour = None,
        38 => style.colour = extended(after).or(style.colour),
        // The colours of the background and of the line below a text are not shown.
        48 | 58 => drop(extended(after)),
        _ => {}
    }
}

/// A colour of the 256-colour palette or an RGB colour, as the nearest of 16. `None` if the codes
/// name no such colour.
fn extended(codes: &mut impl Iterator<Item = u16>) -> Option<u8> {
    match codes.next()? {
        5 => match codes.next()? {
            code @ 0..=15 => u8::try_from(code).ok(),
            code @ 16..=231 => {
                let code = code - 16;
                Some(nearest(code / 36 * 51, code / 6 % 6 * 51, code % 6 * 51))
            }
            code => {
                let grey = (code.min(255) - 232) * 10 + 8;
                Some(nearest(grey, grey, grey))
            }
        },
        2 => {
            let red = codes.next()?.min(255);
            let green = codes.next()?.min(255);
            let blue = codes.next()?.min(255);
            Some(nearest(red, green, blue))
        }
        _ => None,
    }
}

fn nearest(red: u16, green: u16, blue: u16) -> u8 {
    let most = red.max(green).max(blue);
    if most < 48 {
        return 0;
    }
    let is_on = [red, green, blue].map(|part| u8::from(part * 3 >= most * 2));
    let colour = is_on[0] | is_on[1] << 1 | is_on[2] << 2;
    match (colour, most) {
        (7, ..128) => 8,
        (colour, 200..) => colour + 8,
        (colour, _) => colour,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[(&str, &str)]) {
        let runs: Vec<(String, String)> =
            runs(text).into_iter().map(|run| (run.text, run.style.classes())).collect();
        let runs: Vec<(&str, &str)> = runs.iter().map(|(text, it)| (&**text, &**it)).collect();
        assert_eq!(runs, expect, "{text:?}");
    }

    #[test]
    fn styles_are_taken_out_and_other_commands_stay() {
        check("plain", &[("plain", "")]);
        check("\u{1b}[31mred\u{1b}[0m", &[("red", "f1")]);
        check("a\u{1b}[1;92mb\u{1b}[22mc", &[("a", ""), ("b", "f10 b"), ("c", "f10")]);
        check("\u{1b}[38;5;196mx\u{1b}[38;2;0;0;200my", &[("x", "f9"), ("y", "f12")]);
        check("\u{1b}[38:5:196mx\u{1b}[38:2::0:0:200my", &[("x", "f9"), ("y", "f12")]);
        check("\u{1b}[38:2:0:0:200mx\u{1b}[38:5my", &[("xy", "f12")]);
        check("\u{1b}[4:3mx\u{1b}[4:0my\u{1b}[58;5;1mz", &[("x", "u"), ("yz", "")]);
        check("\u{1b}[38;2;65535;0;0mx\u{1b}[99999999;1my", &[("x", "f9"), ("y", "b")]);
        check("\u{1b}[2Ka\u{1b}]0;title\u{7}", &[("\u{1b}[2Ka\u{1b}]0;title\u{7}", "")]);
        check("1%\r2%\r\nend\r", &[("1%\n2%\nend", "")]);
        check("\u{1b}[", &[("\u{1b}[", "")]);
    }
}
