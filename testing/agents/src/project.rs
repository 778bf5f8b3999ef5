//! The project that the agents work on: small awk programs, a failing test, a long log.
//!
//! The project is generated from a seed, so that it has the same bytes on every machine, and its
//! programs need only `sh` and `awk`.

use crate::home::Home;
use std::fmt::Write as _;

/// The country with a wrong rate in the sources; the tests have the right one.
const WRONG: &str = "HU";
const WRONG_RATE: usize = 25;
const RIGHT_RATE: usize = 27;

const CODES: &str = "AT BE BG CH CY CZ DE DK EE ES FI FR GB GE GR HR HU IE IL IS IT JP KE KR LI LT \
                     LU LV MA MD ME MK MT MX NL NO NZ PE PH PL PT RO RS SE SG SI SK TH TN TR TW UA \
                     UY VN ZA ZM";

const WORDS: &str = "amount archive balance batch branch buffer carrier category channel charge \
                     clearing column contract counter credit currency customer daily debit \
                     delivery deposit discount district division entry exchange export factor \
                     freight invoice journal ledger limit margin market monthly \
                     notice number offer order \
                     outlet packet parcel partner payment period permit phase policy portion \
                     postage premium price product quantity quarter quota rebate receipt record \
                     refund region register remark report reserve return revenue route sample \
                     season section segment seller series service settlement shelf shipment sku \
                     source stock storage store subject supply surcharge table target tariff tax \
                     tender terminal threshold total trade transfer transit unit update value \
                     vendor voucher warehouse weight window yearly zone";

/// The size of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Countries in the tax table, at most 56; each is about 350 bytes of source.
    pub countries: usize,
    /// Test cases of each country.
    pub cases: usize,
    /// Columns of the report; each is about 330 bytes of source.
    pub columns: usize,
    /// Batches in the log, one line of about 80 bytes each.
    pub batches: usize,
    /// Sections of the manual, about 700 bytes each.
    pub sections: usize,
}

impl Scale {
    /// For an agent that stores the content of a session once.
    pub const LARGE: Self =
        Self { countries: 56, cases: 8, columns: 60, batches: 600, sections: 22 };
    /// For an agent that stores the content of a session three times over.
    pub const SMALL: Self = Self { countries: 18, cases: 4, columns: 16, batches: 66, sections: 5 };
}

/// A generator of reproducible numbers (the constants are those of Knuth's MMIX).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn word(&mut self) -> &'static str {
        let words: Vec<&str> = WORDS.split_whitespace().collect();
        words[self.below(words.len())]
    }

    fn sentence(&mut self) -> String {
        let count = 7 + self.below(6);
        let words: Vec<&str> = (0..count).map(|_| self.word()).collect();
        format!("The {}.", words.join(" "))
    }
}

/// Writes the project into a home.
///
/// # Errors
///
/// If a file cannot be written.
pub fn write(home: &Home, scale: Scale) -> anyhow::Result<()> {
    let files: [(&str, Vec<u8>); 8] = [
        ("README.md", readme().into_bytes()),
        ("src/tax.awk", tax(scale).into_bytes()),
        ("src/report.awk", report(scale).into_bytes()),
        ("tests/cases.tsv", cases(scale).into_bytes()),
        ("tests/check.awk", CHECK.as_bytes().to_vec()),
        ("tests/run.sh", RUN.as_bytes().to_vec()),
        ("logs/import.log", log(scale).into_bytes()),
        ("assets/logo.png", include_bytes!("../assets/logo.png").to_vec()),
    ];
    for (path, content) in files {
        home.write(format!("project/{path}"), &content)?;
    }
    home.write("project/tools/import.sh", IMPORT.as_bytes())?;
    Ok(())
}

/// The manual that the scripted model writes.
pub fn manual(scale: Scale) -> String {
    let mut dice = Dice(41);
    let mut out = "# Manual\n\nRates are whole percents; configuration is TOML.\n".to_owned();
    for number in 1..=scale.sections {
        let (what, of) = (dice.word(), dice.word());
        _ = write!(out, "\n## {number}. The {what} of a {of}\n\n");
        for _ in 0..4 {
            _ = writeln!(out, "{}", dice.sentence());
        }
        _ = write!(out, "\n| field | unit | note |\n|---|---|---|\n");
        for _ in 0..4 {
            _ = writeln!(
                out,
                "| {}_{} | percent | {} |",
                dice.word(),
                dice.word(),
                dice.sentence()
            );
        }
    }
    out
}

fn readme() -> String {
    let mut dice = Dice(3);
    let mut out = "# pricing\n\nGross prices from net prices, by country.\n\n\
                   - `src/tax.awk`: one function a country\n- `src/report.awk`: the columns of the \
                   report\n- `sh tests/run.sh`: the tests\n- `sh tools/import.sh`: replays the \
                   last nightly import\n"
        .to_owned();
    for _ in 0..6 {
        let lines: Vec<String> = (0..4).map(|_| dice.sentence()).collect();
        _ = write!(out, "\n{}\n", lines.join("\n"));
    }
    out
}

fn rate(index: usize, code: &str) -> usize {
    if code == WRONG { RIGHT_RATE } else { 5 + index * 7 % 21 }
}

fn countries(scale: Scale) -> impl Iterator<Item = (usize, &'static str)> {
    CODES.split_whitespace().enumerate().take(scale.countries)
}

fn tax(scale: Scale) -> String {
    let mut dice = Dice(7);
    let mut out = "# Value added tax, one function a country. Prices are in units.\n\n".to_owned();
    out.push_str("function refund(net, rate) {\n    return -(-net * (100 + rate) / 100)\n}\n");
    for (index, code) in countries(scale) {
        let stored = if code == WRONG { WRONG_RATE } else { rate(index, code) };
        _ = write!(
            out,
            "\n# {}\nfunction gross_{}(net,    rate, share) {{\n    rate = {stored}    # {code}\n\
             {:4}if (net < 0) {{\n        return refund(net, rate)\n    }}\n\
             {:4}share = net * rate\n    return net + share / 100\n}}\n",
            dice.sentence(),
            code.to_lowercase(),
            "",
            "",
        );
    }
    out.push_str("\nfunction gross(code, net) {\n");
    for (_, code) in countries(scale) {
        _ = writeln!(out, "    if (code == \"{code}\") return gross_{}(net)", code.to_lowercase());
    }
    out.push_str("    print \"unknown country: \" code > \"/dev/stderr\"\n    exit 2\n}\n");
    out
}

fn report(scale: Scale) -> String {
    let mut dice = Dice(13);
    let mut out = "# The columns of the report, one function each.\n".to_owned();
    for number in 0..scale.columns {
        let (what, of) = (dice.word(), dice.word());
        let (first, last) = (1 + dice.below(9), 20 + dice.below(70));
        _ = write!(
            out,
            "\n# {}\nfunction column_{number:02}_{what}(row,    {of}, i) {{\n\
             {:4}for (i = {first}; i <= {last}; i++) {{\n\
             {:8}{of} = {of} + row[i] * {}\n    }}\n\
             {:4}if ({of} > {}) {{\n\
             {:8}return sprintf(\"%-12s %10.2f\", \"{what}\", {of})\n    }}\n\
             {:4}return \"\"\n}}\n",
            dice.sentence(),
            "",
            "",
            1 + dice.below(12),
            "",
            100 + dice.below(900),
            "",
            "",
        );
    }
    out
}

fn cases(scale: Scale) -> String {
    let mut dice = Dice(23);
    let mut out = String::new();
    for (index, code) in countries(scale) {
        for _ in 0..scale.cases {
            let net = 1 + dice.below(4_000);
            let cents = net * (100 + rate(index, code));
            _ = writeln!(out, "{code}\t{net}\t{}.{:02}", cents / 100, cents % 100);
        }
    }
    out
}

fn log(scale: Scale) -> String {
    let mut dice = Dice(29);
    let mut out = String::new();
    for batch in 0..scale.batches {
        let at = format!("2026-03-02T02:{:02}:{:02}Z", batch / 60 % 60, batch % 60);
        let (rows, time, sum) = (3 + dice.below(900), 1 + dice.below(400), dice.below(1 << 30));
        let line = if batch * 3 / scale.batches == 1 && batch % (scale.batches / 6) == 0 {
            format!("ERROR batch {batch:04} rejected: unknown country 'XQ' in row {rows}")
        } else if batch % 97 == 41 {
            format!("WARN  batch {batch:04}: waited {time} ms for the lock of the ledger")
        } else {
            format!("INFO  batch {batch:04}: {rows} rows in {time} ms, checksum {sum:08x}")
        };
        _ = writeln!(out, "{at} {line}");
    }
    out
}

const CHECK: &str = r##"{
    got = sprintf("%.2f", gross($1, $2))
    if (got == $3) {
        printf "ok %d - %s: net %d is gross %s\n", NR, $1, $2, got
    } else {
        failed++
        printf "not ok %d - %s: net %d\n", NR, $1, $2
        printf "# error: expected %s, got %s (see gross_%s in src/tax.awk)\n", $3, got, tolower($1)
    }
}
END {
    printf "1..%d\n# %d failed\n", NR, failed
    exit (failed > 0)
}
"##;

const RUN: &str = "#!/bin/sh\n# One line a case of tests/cases.tsv; fails when any case fails.\n\
                   cd \"$(dirname \"$0\")/..\" || exit 2\n\
                   exec awk -F '\\t' -f src/tax.awk -f tests/check.awk tests/cases.tsv\n";

const IMPORT: &str = "#!/bin/sh\n# Replays the log of the last import; fails when it held errors.\n\
                      cd \"$(dirname \"$0\")/..\" || exit 2\n\
                      awk '{ print \"replay\", $0 } / ERROR / { bad++ }\n\
                      END { print bad + 0 \" batches rejected\"; exit (bad > 0) * 3 }' \
                      logs/import.log\n";
