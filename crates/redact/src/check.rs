//! Checks that a regular expression cannot express, such as entropy, check digits and whether an
//! address is public.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde::Deserialize;

use crate::national;

/// A condition for a secret that a regular expression cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// The check digit of a payment card (ISO/IEC 7812-1, Annex B), and a known issuer.
    Card,
    /// An IPv4 address that is public, is no well-known name server, and does not look like the
    /// number of a version or section.
    PublicIpv4,
    /// An IPv6 address that is routed on the Internet.
    PublicIpv6,
    /// A telephone number: 9 to 15 digits that are not all the same. A number of ten or more digits
    /// that ends in 555-01xx is none, whatever its country: North America reserves these for
    /// fiction.
    Phone,
    /// An email address that may belong to a person.
    Email,
    /// At least one letter and one digit, as passwords and tokens have, and words do not.
    Mixed,
    /// The user name and password of an `Authorization: Basic` header, in base64.
    Basic,
    /// A text that may be a password: no variable, no placeholder, and no word that examples use.
    Password,
    /// As `Password`, and with a letter and a digit or special character, so that it is not a word.
    Strong,
    /// An international bank account number (ISO 13616).
    Iban,
    /// A social security number of the United States.
    UsSsn,
    /// A national insurance number of the United Kingdom.
    UkNino,
    /// A German tax number.
    GermanTaxId,
    /// A number of the French population register.
    FrenchNir,
    /// A Spanish DNI or NIE.
    SpanishId,
    /// An Italian tax code.
    ItalianTaxCode,
    /// A Dutch BSN.
    DutchBsn,
    /// A Polish PESEL.
    PolishPesel,
    /// A Brazilian CPF.
    BrazilianCpf,
}

impl Check {
    /// Whether the condition holds for `secret`, which begins at `at` in `text`.
    pub(crate) fn holds(self, secret: &str, text: &str, at: usize) -> bool {
        match self {
            Check::Card => is_card(secret),
            Check::PublicIpv4 => is_public_v4(secret, text, at),
            Check::PublicIpv6 => secret.parse().is_ok_and(is_public_v6),
            Check::Phone => is_phone(secret),
            Check::Email => is_email(secret),
            Check::Mixed => is_mixed(secret),
            Check::Basic => is_basic(secret),
            Check::Password => is_password(secret),
            Check::Strong => is_password(secret) && is_no_word(secret),
            Check::Iban => national::is_iban(secret),
            Check::UsSsn => national::is_us_ssn(secret),
            Check::UkNino => national::is_uk_nino(secret),
            Check::GermanTaxId => national::is_german_tax_id(secret),
            Check::FrenchNir => national::is_french_nir(secret),
            Check::SpanishId => national::is_spanish_id(secret),
            Check::ItalianTaxCode => national::is_italian_tax_code(secret),
            Check::DutchBsn => national::is_dutch_bsn(secret),
            Check::PolishPesel => national::is_polish_pesel(secret),
            Check::BrazilianCpf => national::is_brazilian_cpf(secret),
        }
    }
}

/// Shannon entropy of a text, in bits per byte.
pub(crate) fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    text.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let len = text.len() as f64;
    let bits = counts.iter().filter(|&&n| n > 0).map(|&n| {
        let share = f64::from(n) / len;
        -share * share.log2()
    });
    bits.sum()
}

fn is_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let starts = |from: u32, to: u32, len: usize| {
        let start = digits.iter().take(len).fold(0, |all, digit| all * 10 + digit);
        (from..=to).contains(&start)
    };
    let issued = match digits.len() {
        13 | 19 => starts(4, 4, 1),
        14 => starts(300, 305, 3) || starts(36, 36, 2) || starts(38, 38, 2),
        15 => starts(34, 34, 2) || starts(37, 37, 2),
        16 => {
            starts(4, 4, 1)
                || starts(51, 55, 2)
                || starts(2221, 2720, 4)
                || starts(6011, 6011, 4)
                || starts(644, 659, 3)
                || starts(3528, 3589, 4)
        }
        _ => false,
    };
    let varied = digits.iter().any(|digit| *digit != digits[0]);
    let digits = digits.iter().rev().enumerate().map(|(idx, &digit)| match (idx % 2, digit) {
        (1, 5..) => digit * 2 - 9,
        (1, _) => digit * 2,
        _ => digit,
    });
    let sum: u32 = digits.sum();
    issued && varied && sum.is_multiple_of(10)
}

/// Whether an IPv4 address is public. False for well-known name servers, for the small numbers of
/// sections (`1.2.3.4`), and for versions of four numbers: `Chrome/120.0.6099.109`, `v91.58.3.0`,
/// `version 91.58.3.0`.
fn is_public_v4(secret: &str, text: &str, at: usize) -> bool {
    let Ok(address) = secret.parse::<Ipv4Addr>() else { return false };
    let before = &text.as_bytes()[..at];
    let version = match before {
        [.., letter, b'/'] => letter.is_ascii_alphanumeric(),
        [.., b'v' | b'V' | b'-' | b'@' | b'^' | b'~' | b'<' | b'_'] => !before.ends_with(b"<"),
        _ => {
            let signs = before.iter().rev().take_while(|byte| b" \t\n`'\":=(".contains(byte));
            let signs = signs.count();
            let word = &before[..before.len() - signs];
            let word = &word[word.len().saturating_sub(8)..];
            let word = word.to_ascii_lowercase();
            word.ends_with(b"version") || word.ends_with(b"release") || before.ends_with(b"==")
        }
    };
    let [a, b, c, _] = address.octets();
    let is_reserved = address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_unspecified()
        || address.is_broadcast()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 198 && (18..20).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        // The numbers of sections and versions are small.
        || (a < 10 && b < 10);
    let resolver = matches!(secret, "8.8.8.8" | "8.8.4.4" | "1.1.1.1" | "1.0.0.1" | "9.9.9.9");
    !version && !is_reserved && !resolver
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    // Only 2000::/3 is assigned, and in it 2001:db8::/32 and 3fff::/20 are for documentation.
    let documents = (first == 0x2001 && second == 0xdb8) || (first == 0x3fff && second < 0x1000);
    first & 0xe000 == 0x2000 && !documents
}

fn is_phone(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).collect();
    let dialled = (9..=15).contains(&digits.len());
    // 555-01xx is reserved for fiction.
    let fiction = digits.len() >= 10 && digits[digits.len() - 7..].starts_with(b"55501");
    dialled && !fiction && digits.iter().any(|digit| *digit != digits[0])
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let domain = domain.to_ascii_lowercase();
    let last = domain.rsplit('.').next().unwrap_or_default();
    // The reserved domains of RFC 2606, those of local networks, and common placeholders.
    let reserved = ["example", "test", "invalid", "localhost", "local", "internal", "lan"];
    let example =
        ["example.com", "example.org", "example.net", "email.com", "domain.com", "test.com"];
    let is_reserved_domain = reserved.contains(&last)
        || example.iter().any(|name| domain == *name || domain.ends_with(&format!(".{name}")))
        || domain == "users.noreply.github.com"
        || matches!(local, "git" | "noreply" | "no-reply" | "user" | "you" | "example" | "name");
    // Names of files may contain an `@`: `icon@2x.png`, `a@b.py`.
    let file = ["png", "jpg", "jpeg", "gif", "svg", "webp", "js", "ts", "css", "py", "rs", "json"];
    !is_reserved_domain && !file.contains(&last) && !local.starts_with('.') && !local.ends_with('.')
}

fn is_mixed(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit()) && text.bytes().any(|b| b.is_ascii_alphabetic())
}

fn is_basic(text: &str) -> bool {
    let decoded = crate::base64::decode(text.as_bytes());
    decoded.is_some_and(|decoded| {
        let shown = decoded.chars().all(|c| !c.is_control());
        shown && decoded.split_once(':').is_some_and(|(_, password)| !password.is_empty())
    })
}

/// Whether a text may be a password: it is no variable and no placeholder, such as `${VAR}`,
/// `<password>`, `%s` or `***`, and nothing that examples use, such as `password` or `your-key`.
fn is_password(text: &str) -> bool {
    const EXAMPLES: [&str; 26] = [
        "password",
        "passwd",
        "pass",
        "pwd",
        "secret",
        "changeme",
        "change-me",
        "change_me",
        "example",
        "token",
        "key",
        "your",
        "null",
        "none",
        "nil",
        "undefined",
        "true",
        "false",
        "string",
        "str",
        "user",
        "username",
        "test",
        "dummy",
        "placeholder",
        "redacted",
    ];
    let lower = text.to_ascii_lowercase();
    let open = text.starts_with(['$', '<', '{', '%', '*', '[', '(', '#', '@', '&', '`', '!'])
        && !is_mixed(text);
    let variable = text.starts_with("${")
        || text.starts_with("$(")
        || text.starts_with("{{")
        || text.starts_with("<")
        || text.starts_with("%(")
        || text.starts_with("process.")
        || text.starts_with("os.")
        || text.starts_with("env.");
    let stars = text.chars().all(|c| matches!(c, '*' | 'x' | 'X' | '.' | '-' | '_' | '•'));
    let yours = lower.starts_with("your") || lower.starts_with("my-") || lower.starts_with("my_");
    !open && !variable && !stars && !yours && !EXAMPLES.contains(&&*lower)
}

fn is_no_word(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit() || "!@#$%^*".contains(c))
        && text.contains(|c: char| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(check: Check, yes: &[&str], no: &[&str]) {
        for text in yes {
            assert!(check.holds(text, text, 0), "{text}");
        }
        for text in no {
            assert!(!check.holds(text, text, 0), "{text}");
        }
    }

    #[test]
    fn numbers_are_checked() {
        let cards = ["4111 1111 1111 1111", "5555-5555-5555-4444", "378282246310005"];
        check(Check::Card, &cards, &["4111 1111 1111 1112", "0000000000000000", "1732212345678"]);
        let private = ["127.0.0.1", "10.0.0.7", "192.168.1.1", "203.0.113.9", "1.2.3.4", "8.8.8.8"];
        check(Check::PublicIpv4, &["93.184.216.34", "52.95.110.1"], &private);
        check(Check::PublicIpv6, &["2606:4700:4700::1111"], &["::1", "fe80::1", "2001:db8::1"]);
        check(Check::Phone, &["+49 30 901820", "(212) 736-5000"], &["212-555-0123", "12345678"]);
        assert!(!Check::PublicIpv4.holds("120.10.6099.10", "", 0));
        assert!(!Check::PublicIpv4.holds("93.184.216.34", "Chrome/93.184.216.34", 7));
        assert!(Check::PublicIpv4.holds("93.184.216.34", "http://93.184.216.34", 7));
        assert!(Check::PublicIpv4.holds("93.184.216.34", "address: \"93.184.216.34", 10));
        assert!(!Check::PublicIpv4.holds("91.58.3.0", "version `91.58.3.0`", 9));
        assert!(!Check::PublicIpv4.holds("91.58.3.0", "\"version\": \"91.58.3.0\"", 12));
    }

    #[test]
    fn words_are_checked() {
        let no_persons = ["git@github.com", "a@example.com", "x@2x.png", "me@host.local"];
        check(Check::Email, &["jane.roe@fastmail.com", "x+y@sub.uni.edu"], &no_persons);
        check(Check::Mixed, &["a1"], &["ab", "12", ""]);
        check(Check::Basic, &["YWxhZGRpbjpvcGVuc2VzYW1l"], &["YWxhZGRpbg==", "Zm9vOg==", "x"]);
        let stand_ins = ["${PW}", "<password>", "*****", "password", "your-password-here"];
        check(Check::Password, &["hunter2", "s3cr3t!", "$ecure9"], &stand_ins);
    }

    #[test]
    fn entropy_is_counted_in_bits() {
        assert!((entropy("abcd") - 2.0).abs() < 1e-9);
        assert!(entropy("aaaa").abs() < 1e-9);
        assert!(entropy("").abs() < 1e-9);
    }
}
