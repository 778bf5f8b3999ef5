//! Secrets in many places and encodings: how many of each class are found. The table is the one in
//! `docs/redact.md`.
//!
//! The secrets are generated when the test runs, so that no file of this repository contains one.

mod shapes;

use std::collections::BTreeMap;

use epitome_redact::{Finder, Redactor, Rules};
use fixtures::planted::like;
use serde_json::{Value, json};
use shapes::{CLASSES, Shape};

/// Rules, and the format of their secrets.
const SECRETS: [(&str, &str); 12] = [
    ("aws-access-key", "AKIA[A-Z2-7]{16}"),
    ("github-pat", "ghp_[A-Za-z0-9]{36}"),
    ("gitlab-pat", "glpat-[A-Za-z0-9_-]{19}[A-Za-z0-9]"),
    ("anthropic-api-key", "sk-ant-api03-[A-Za-z0-9_-]{93}AA"),
    ("openai-api-key", "sk-proj-[A-Za-z0-9_-]{74}T3BlbkFJ[A-Za-z0-9_-]{73}[A-Za-z0-9]"),
    ("slack-token", "xoxb-[0-9]{12}-[0-9]{12}-[A-Za-z0-9]{24}"),
    ("jwt", r"eyJhbGciOiJIUzI1NiJ9\.eyJ[A-Za-z0-9_-]{40}\.[A-Za-z0-9_-]{42}[A-Za-z0-9]"),
    ("stripe-key", "sk_live_[A-Za-z0-9]{24}"),
    ("google-api-key", "AIza[A-Za-z0-9_-]{34}[A-Za-z0-9]"),
    ("npm-token", "npm_[A-Za-z0-9]{36}"),
    ("huggingface-token", "hf_[A-Za-z]{34}"),
    ("sendgrid-key", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{42}[A-Za-z0-9]"),
];

/// A secret that its rule finds as a separate word: the test measures the place, not the rule.
fn secret(finder: &Finder, expression: &str, nth: u64) -> String {
    let mut tokens = (0..100).map(|seed| like(expression, seed * 31 + nth));
    let found = tokens.find(|token| {
        let text = format!("see {token} there");
        finder.find(&text).iter().any(|hit| text[hit.range.clone()] == **token)
    });
    found.unwrap_or_else(|| panic!("{expression} is never found"))
}

/// A line of a session that contains a text.
fn line(text: &str) -> String {
    json!({"type": "message", "message": {"role": "user", "content": text}}).to_string()
}

fn redacted(finder: &Finder, line: &str) -> (String, usize) {
    let mut redactor = Redactor::new(finder);
    let splices = redactor.splices(&line.as_bytes(), &[]);
    let (mut out, mut at) = (Vec::new(), 0);
    for splice in &splices {
        out.extend_from_slice(&line.as_bytes()[at..splice.span.start as usize]);
        out.extend_from_slice(&splice.with);
        at = splice.span.end as usize;
    }
    out.extend_from_slice(&line.as_bytes()[at..]);
    (String::from_utf8(out).expect("it is a text"), redactor.found().len())
}

/// Whether no usable part of `encoded` is left in a line.
fn is_gone(out: &str, secret: &str, encoded: &str) -> bool {
    let value: Value = serde_json::from_str(out).expect("the line stays JSON");
    let text = value["message"]["content"].as_str().expect("it is a string");
    let chars: Vec<char> = encoded.chars().collect();
    let left = |few: &[char]| text.contains(&few.iter().collect::<String>());
    !text.contains(secret) && !chars.windows(12.max(chars.len() / 3)).any(left)
}

fn table(finder: &Finder) -> (String, Vec<String>) {
    let mut counts: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    let mut missed = Vec::new();
    for (nth, Shape { class, name, encode, before, behind }) in shapes::all().enumerate() {
        for (rule, expression) in SECRETS {
            let secret = secret(finder, expression, nth as u64);
            let encoded = encode(&secret);
            let line = line(&format!("{before}{encoded}{behind}"));
            let (out, found) = redacted(finder, &line);
            let gone = is_gone(&out, &secret, &encoded);
            assert_eq!(gone, gone && found > 0, "what is gone was found");
            assert_eq!(redacted(finder, &out), (out.clone(), 0), "twice is once: {name}, {rule}");
            let count = counts.entry(class).or_default();
            count.0 += usize::from(gone);
            count.1 += 1;
            if !gone {
                missed.push(format!("{}, {name}, {rule} {out}", CLASSES[class]));
            }
        }
    }
    let mut table = "| where the secret is | found |\n|---|---:|\n".to_owned();
    for (class, (found, all)) in counts {
        table.push_str(&format!("| {} | {found} of {all} |\n", CLASSES[class]));
    }
    (table, missed)
}

#[test]
fn the_table_in_the_documents_says_how_much_of_each_class_is_found() {
    let finder = Finder::new(Rules::built_in()).expect("rules");
    let (table, missed) = table(&finder);
    let documents = include_str!("../../../docs/redact.md");
    assert!(documents.contains(&table), "docs/redact.md needs:\n{table}\n{}", missed.join("\n"));
}

#[test]
fn the_same_secret_has_one_number_however_it_is_written() {
    let finder = Finder::new(Rules::built_in()).expect("rules");
    let token = secret(&finder, SECRETS[1].1, 7);
    let percent: String = token.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let text = format!("{token} \u{1b}[32m{token}\u{1b}[0m t%3D{token} {percent} a\\n{token}");
    let expect = "[REDACTED:github-pat-1] \u{1b}[32m[REDACTED:github-pat-1]\u{1b}[0m \
                  t%3D[REDACTED:github-pat-1] [REDACTED:github-pat-1] a\\n[REDACTED:github-pat-1]";
    assert_eq!(Redactor::new(&finder).text(&text), expect);
}

/// Personal data with check digits, after codes that hide a word. Parts are joined here, so that
/// this file contains no such number.
#[test]
fn numbers_of_people_are_found() {
    let finder = Finder::new(Rules::built_in()).expect("rules");
    let cases: [(&str, &str, [&str; 2]); 10] = [
        ("iban", "pay to ", ["DE89 3704 0044", " 0532 0130 00"]),
        ("iban", "IBAN=", ["GB29NWBK", "60161331926819"]),
        ("us-ssn", "SSN: ", ["536-22", "-8726"]),
        ("uk-nino", "his number is ", ["AA 31", " 22 46 C"]),
        ("uk-nino", "NINO: ", ["AA31", "2246C"]),
        ("french-nir", "secu ", ["2 55 08 14 168", " 025 38"]),
        ("german-tax-id", "Steuer-ID ", ["86 095", " 742 719"]),
        ("spanish-id", "DNI: ", ["12345678", "Z"]),
        ("italian-tax-code", "codice fiscale ", ["RSSMRA85", "T10A562S"]),
        ("brazilian-cpf", "cpf ", ["529.982", ".247-25"]),
    ];
    let mut missed = Vec::new();
    for (rule, words, parts) in cases {
        let number = parts.concat();
        let wide = [" ", "\u{1b}[1m", "\\n", "%20"];
        for behind in if words.ends_with(' ') { &wide[..] } else { &[""] } {
            let text = format!("{}{behind}{number} and more", words.trim_end());
            let out = Redactor::new(&finder).text(&text).into_owned();
            let expect = format!("{}{behind}[REDACTED:{rule}-1] and more", words.trim_end());
            if out != expect {
                missed.push(format!("{expect:?}: {out:?}"));
            }
        }
    }
    assert_eq!(missed, [""; 0]);
}
