//! The places of secrets, and how they are encoded there.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A place for a secret.
pub struct Shape {
    /// An index into [`CLASSES`].
    pub class: usize,
    pub name: &'static str,
    /// How the secret is written.
    pub encode: fn(&str) -> String,
    pub before: &'static str,
    pub behind: &'static str,
}

pub const CLASSES: [&str; 10] = [
    "plain: a word, a value, a header, an address",
    "behind or between colours and other commands to a terminal",
    "behind percent codes, or written in them",
    "behind escapes of C and JSON (`\\n`, `\\u003d`, `\\x1b[32m`), or written in them",
    "behind HTML entities, or written in them",
    "with characters of no width in it, in UTF-16 with NULs, in full-width letters",
    "in base64, also of UTF-16 and twice, and in hexadecimal digits",
    "escapes in escapes: JSON in JSON, percent codes of percent codes",
    "daily output: `grep --color`, `gh auth status`, `docker inspect`, `kubectl -o json`, `cat -v`",
    "not decoded: reversed, rot13, `xxd`",
];

/// Every shape.
pub fn all() -> impl Iterator<Item = Shape> {
    let plain =
        PLAIN.iter().map(|&(name, before, behind)| (0, name, same as Encode, before, behind));
    let odd = ODD.iter().copied();
    plain.chain(odd).map(|(class, name, encode, before, behind)| Shape {
        class,
        name,
        encode,
        before,
        behind,
    })
}

type Encode = fn(&str) -> String;

const PLAIN: [(&str, &str, &str); 24] = [
    ("alone", "", ""),
    ("a word", "the key is ", " and works"),
    ("a sentence's end", "use ", ". Then go on"),
    ("a line", "first\n", "\nlast"),
    ("an export", "export TOKEN=", "\nmake"),
    ("quoted", "token = \"", "\""),
    ("single quotes", "api('", "')"),
    ("backticks", "set `", "` there"),
    ("brackets", "(", ")"),
    ("a JSON member", "{\"key\": \"", "\"}"),
    ("JSON in words", "got {\"key\": \"", "\"} back"),
    ("YAML", "auth:\n  value: ", "\n"),
    ("a header", "Authorization: Bearer ", "\r\nHost: x"),
    ("another header", "-H 'X-Api-Key: ", "'"),
    ("a query", "https://api.test/v1?key=", "&page=2"),
    ("a user in an address", "https://user:", "@git.test/a.git"),
    ("a list", "a,", ",b"),
    ("a table", "| name | ", " |"),
    ("an element", "<value>", "</value>"),
    ("an argument", "tool --token ", " run"),
    ("an argument with =", "tool --token=", " run"),
    ("a tab", "name\t", "\tend"),
    ("a comment", "# ", " # old"),
    ("a diff", "-old\n+", "\n"),
];

type Odd = (usize, &'static str, Encode, &'static str, &'static str);

const ODD: [Odd; 76] = [
    (1, "SGR", same, "see \x1b[32m", "\x1b[0m"),
    (1, "bright", same, "\x1b[1;92m", "\x1b[m end"),
    (1, "256 colours", same, "\x1b[38;5;196m", "\x1b[39m"),
    (1, "true colour", same, "=\x1b[38;2;1;2;3m", ""),
    (1, "grep", same, "a:\x1b[01;31m\x1b[K", "\x1b[m\x1b[K"),
    (1, "= and SGR", same, "T=\x1b[33m", "\x1b[0m"),
    (1, "title", same, "\x1b]0;x\x07", ""),
    (1, "link", same, "\x1b]8;;http://a.test\x1b\\", "\x1b]8;;\x1b\\"),
    (1, "character set", same, "\x1b(B", ""),
    (1, "C1", same, "\u{9b}32m", "\u{9b}0m"),
    (1, "behind a coloured word", same, "\x1b[36mtoken\x1b[0m", ""),
    (1, "erase line", same, "a\x1b[2K", ""),
    (1, "coloured in the middle", coloured, "", ""),
    (2, "%3D", same, "token%3D", "%26x"),
    (2, "%22", same, "%22", "%22"),
    (2, "%20", same, "a%20", "%20b"),
    (2, "%0A", same, "a%0A", "%0Ab"),
    (2, "%2F", same, "a%2F", ""),
    (2, "redirect", same, "?next=https%3A%2F%2Fx.test%2Fcb%3Fcode%3D", "%26state%3D1"),
    (2, "form", same, "grant=x&body=%7B%22k%22%3A%22", "%22%7D"),
    (2, "all of it", percent, "k=", "&x"),
    (2, "signs of it", percent_signs, "k=", "&x"),
    (3, "\\n", same, "a\\n", "\\nb"),
    (3, "\\t", same, "a\\t", "\\tb"),
    (3, "\\r\\n", same, "a\\r\\n", ""),
    (3, "\\u003d", same, "a\\u003d", ""),
    (3, "\\u0022", same, "a\\u0022", "\\u0022"),
    (3, "\\u001b", same, "\\u001b[32m", "\\u001b[0m"),
    (3, "\\x1b", same, "\\x1b[32m", "\\x1b[0m"),
    (3, "\\033", same, "\\033[1;31m", "\\033[0m"),
    (3, "\\e", same, "\\e[31m", "\\e[0m"),
    (3, "\\x3d", same, "a\\x3d", ""),
    (3, "\\u{3d}", same, "a\\u{3d}", ""),
    (3, "\\x of all", hex_escapes, "b'", "'"),
    (3, "\\u of all", json_escapes, "\"", "\""),
    (3, "octal", same, "a\\075", ""),
    (4, "&quot;", same, "k=&quot;", "&quot;"),
    (4, "&#61;", same, "k&#61;", "&#38;x"),
    (4, "&#x3D;", same, "k&#x3D;", ""),
    (4, "&lt;", same, "&lt;key&gt;", "&lt;/key&gt;"),
    (4, "all of it", entities, "<p>", "</p>"),
    (4, "all, hexadecimal", hex_entities, "<p>", "</p>"),
    (5, "zero width space", |it| joined(it, "\u{200b}"), "", ""),
    (5, "zero width joiner", |it| joined(it, "\u{200d}"), "", ""),
    (5, "word joiner", |it| joined(it, "\u{2060}"), "", ""),
    (5, "soft hyphens", |it| joined(it, "\u{ad}"), "", ""),
    (5, "byte order mark before", same, "\u{feff}", ""),
    (5, "zero width space before", same, "token\u{200b}", ""),
    (5, "override of direction", same, "a\u{202e}", "\u{202c}"),
    (5, "UTF-16 with NULs", |it| joined(it, "\0"), "", ""),
    (5, "full width", wide, "", ""),
    (6, "base64", |it| STANDARD.encode(format!("token {it} end")), "", ""),
    (6, "base64 in words", |it| STANDARD.encode(format!("k={it}")), "data: ", " end"),
    (6, "base64 twice", |it| STANDARD.encode(STANDARD.encode(format!("k={it}"))), "", ""),
    (6, "base64 of UTF-16", |it| STANDARD.encode(utf16(&format!("k={it}"))), "-enc ", ""),
    (6, "base64 behind \\n", |it| STANDARD.encode(format!("k={it}")), "a:\\n", "\\n"),
    (6, "base64 behind %3D", |it| STANDARD.encode(format!("k={it}")), "a%3D", ""),
    (6, "hexadecimal", hex, "blob ", " end"),
    (6, "HEXADECIMAL", |it| hex(it).to_uppercase(), "0x", ""),
    (7, "JSON in JSON", |it| json(&json(it)), "x = ", ""),
    (7, "JSON in JSON in JSON", same, "x = \"\\\"\\\\\\\"a\\\\\\\\n", "\\\\\\\"\\\"\""),
    (7, "%253D", same, "a%253D", "%2526"),
    (7, "\\\\n", same, "a\\\\n", "\\\\n"),
    (7, "\\\\u003d", same, "a\\\\u003d", ""),
    (7, "&amp;quot;", same, "a&amp;quot;", ""),
    (7, "colour in JSON in JSON", same, "{\\\"k\\\": \\\"\\\\u001b[32m", "\\\"}"),
    (8, "grep --color", same, "\x1b[35m\x1b[K.env\x1b[m\x1b[K:\x1b[01;31m\x1b[K", "\x1b[m\x1b[K"),
    (8, "gh auth status -t", same, "  - Token: \x1b[0;1;39m", "\x1b[0m\n"),
    (8, "docker inspect", same, "\"Cmd\": [\"sh\", \"-c\", \"cd /x\\n", "\\nmake\"]"),
    (8, "kubectl -o json", same, "\"data\": {\"env\": \"A=1\\nT\\u003d", "\\n\"}"),
    (8, "cat -v", same, "see ^[[1;32m", "^[[0m\n"),
    (8, "grep and cat -v", same, "a:^[[01;31m^[[K", "^[[m^[[K"),
    (8, "two lines of a command", |it| format!("{}\\\n  {}", &it[..12], &it[12..]), "", ""),
    (9, "reversed", |it| it.chars().rev().collect(), "", ""),
    (9, "rot13", rot13, "", ""),
    (9, "xxd", xxd, "", ""),
];

fn same(secret: &str) -> String {
    secret.to_owned()
}

fn each(secret: &str, code: impl Fn(u8) -> String) -> String {
    secret.bytes().map(code).collect()
}

fn joined(secret: &str, with: &str) -> String {
    secret.chars().map(String::from).collect::<Vec<_>>().join(with)
}

fn coloured(secret: &str) -> String {
    format!("{}\x1b[1m{}\x1b[0m{}", &secret[..3], &secret[3..9], &secret[9..])
}

fn percent(secret: &str) -> String {
    each(secret, |byte| format!("%{byte:02X}"))
}

fn percent_signs(secret: &str) -> String {
    each(secret, |byte| {
        if byte.is_ascii_alphanumeric() {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02x}")
        }
    })
}

fn hex_escapes(secret: &str) -> String {
    each(secret, |byte| format!("\\x{byte:02x}"))
}

fn json_escapes(secret: &str) -> String {
    each(secret, |byte| format!("\\u{byte:04x}"))
}

fn entities(secret: &str) -> String {
    each(secret, |byte| format!("&#{byte};"))
}

fn hex_entities(secret: &str) -> String {
    each(secret, |byte| format!("&#x{byte:X};"))
}

fn wide(secret: &str) -> String {
    secret.chars().filter_map(|c| char::from_u32(u32::from(c) + 0xfee0)).collect()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn hex(secret: &str) -> String {
    each(secret, |byte| format!("{byte:02x}"))
}

fn json(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}

fn rot13(secret: &str) -> String {
    each(secret, |byte| {
        let turned = |first: u8| char::from(first + (byte - first + 13) % 26).to_string();
        match byte {
            b'a'..=b'z' => turned(b'a'),
            b'A'..=b'Z' => turned(b'A'),
            _ => char::from(byte).to_string(),
        }
    })
}

fn xxd(secret: &str) -> String {
    let line = |(idx, line): (usize, &[u8])| {
        let pairs: Vec<String> =
            line.chunks(2).map(|pair| hex(&String::from_utf8_lossy(pair))).collect();
        format!("{:08x}: {}", idx * 16, pairs.join(" "))
    };
    secret.as_bytes().chunks(16).enumerate().map(line).collect::<Vec<_>>().join("\n")
}
