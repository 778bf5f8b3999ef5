//! Numbers with a unit. Bytes, lines, tokens and turns are different types, so that none is
//! reported as another.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

macro_rules! amount {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize,
            Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl Add for $name {
            type Output = $name;
            fn add(self, other: $name) -> $name {
                $name(self.0 + other.0)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: $name) {
                self.0 += other.0;
            }
        }

        /// Subtraction stops at zero: an amount is never negative.
        impl Sub for $name {
            type Output = $name;
            fn sub(self, other: $name) -> $name {
                $name(self.0.saturating_sub(other.0))
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = $name>>(amounts: I) -> $name {
                amounts.fold($name(0), Add::add)
            }
        }
    };
}

amount! {
    /// Tokens of a model, as a [`Counter`](crate::Counter) counts them.
    Tokens
}
amount! {
    /// Bytes, on disk or in memory. Printed in B, KB, MB or GB; 1 KB is 1,000 bytes.
    Bytes
}
amount! {
    /// Lines of text: the number of line feeds, plus one if the text is not empty and does not end
    /// with a line feed.
    Lines
}
amount! {
    /// Turns: a user message and everything until the next one.
    Turns
}

amount! {
    /// Money, in millionths of a US dollar. At $1 per million tokens, a token costs 1.
    MicroDollars
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, &["", "k", "M", "G"])
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, &[" B", " KB", " MB", " GB"])
    }
}

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, if self.0 == 1 { "line" } else { "lines" })
    }
}

impl fmt::Display for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, if self.0 == 1 { "turn" } else { "turns" })
    }
}

/// In dollars. Zero, and amounts of at least $0.00995, have two decimals; other amounts have four.
/// The limit is $0.00995 because that would be rounded to `$0.0100`.
impl fmt::Display for MicroDollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, width) = if self.0 == 0 || self.0 >= 9_950 { (10_000, 2) } else { (100, 4) };
        let rounded = (u128::from(self.0) + unit / 2) / unit;
        let one = 1_000_000 / unit;
        f.pad(&format!("${}.{:0width$}", rounded / one, rounded % one))
    }
}

/// Writes a value and its unit: a value below 1,000 as a whole number, a larger one in a larger
/// unit, with one decimal. The calculation uses integers only, so that the same value always gives
/// the same text.
fn scaled(f: &mut fmt::Formatter<'_>, value: u64, suffixes: &[&str; 4]) -> fmt::Result {
    let mut unit = 1_u64;
    let mut idx = 0;
    // A value that would be rounded up to 1000.0 is shown in the next larger unit.
    while idx + 1 < suffixes.len() && value >= unit * 1000 - if idx == 0 { 0 } else { unit / 20 } {
        unit *= 1000;
        idx += 1;
    }
    if idx == 0 {
        return f.pad(&format!("{value}{}", suffixes[0]));
    }
    let tenths = (u128::from(value) * 10 + u128::from(unit) / 2) / u128::from(unit);
    f.pad(&format!("{}.{}{}", tenths / 10, tenths % 10, suffixes[idx]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_with_their_unit() {
        let cases: &[(String, &str)] = &[
            (Bytes(0).to_string(), "0 B"),
            (Bytes(999).to_string(), "999 B"),
            (Bytes(1000).to_string(), "1.0 KB"),
            (Bytes(15_249).to_string(), "15.2 KB"),
            (Bytes(999_949).to_string(), "999.9 KB"),
            (Bytes(999_950).to_string(), "1.0 MB"),
            (Bytes(4_174_211).to_string(), "4.2 MB"),
            (Tokens(54_200).to_string(), "54.2k"),
            (Tokens(12).to_string(), "12"),
            (Lines(1).to_string(), "1 line"),
            (Lines(0).to_string(), "0 lines"),
            (Turns(2).to_string(), "2 turns"),
            (MicroDollars(0).to_string(), "$0.00"),
            (MicroDollars(49).to_string(), "$0.0000"),
            (MicroDollars(3_149).to_string(), "$0.0031"),
            (MicroDollars(9_949).to_string(), "$0.0099"),
            (MicroDollars(9_950).to_string(), "$0.01"),
            (MicroDollars(424_999).to_string(), "$0.42"),
            (MicroDollars(1_999_999).to_string(), "$2.00"),
            (MicroDollars(1_234_567_890).to_string(), "$1234.57"),
        ];
        for (got, expect) in cases {
            assert_eq!(got, expect);
        }
    }

    #[test]
    fn subtraction_stops_at_zero() {
        assert_eq!(Tokens(3) - Tokens(5), Tokens(0));
    }
}
