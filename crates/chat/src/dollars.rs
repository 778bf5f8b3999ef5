//! Parses amounts of money.

use epitome_model::MicroDollars;

/// Parses an amount of dollars, such as `2` or `0.50`. Digits after the sixth decimal are ignored.
/// `None` if the text is not an amount, or the amount is too large.
///
/// ```
/// use epitome_model::MicroDollars;
///
/// assert_eq!(epitome_chat::parse_dollars("0.50"), Some(MicroDollars(500_000)));
/// ```
pub fn parse_dollars(text: &str) -> Option<MicroDollars> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = whole.bytes().chain(part.bytes()).all(|b| b.is_ascii_digit());
    if whole.is_empty() && part.is_empty() || !is_digits {
        return None;
    }
    let micro: String = part.chars().chain("000000".chars()).take(6).collect();
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    whole.checked_mul(1_000_000)?.checked_add(micro.parse().ok()?).map(MicroDollars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_dollars_are_exact() {
        for (text, expect) in [
            ("2", Some(2_000_000)),
            ("2.00", Some(2_000_000)),
            ("0.000001", Some(1)),
            (".5", Some(500_000)),
            ("", None),
            (".", None),
            ("-1", None),
            ("1e3", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(parse_dollars(text), expect.map(MicroDollars), "{text}");
        }
    }
}
