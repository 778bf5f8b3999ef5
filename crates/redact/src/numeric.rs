//! Finds numbers: telephone numbers, cards, IP addresses and others that have no keyword, so that
//! the rules for them search around digits.

use std::ops::Range;

use crate::check::Check;

/// The minimum number of characters of a run: the six digits of `AA312246C`.
const LEAST: usize = 6;

/// Whether the rules with this check search around numbers, and not around keywords.
pub(crate) fn is_numeric(check: Check) -> bool {
    match check {
        Check::Card | Check::PublicIpv4 | Check::PublicIpv6 | Check::Phone => true,
        Check::Iban | Check::UsSsn | Check::UkNino | Check::FrenchNir => true,
        Check::BrazilianCpf => true,
        Check::Email | Check::Mixed | Check::Basic | Check::Password | Check::Strong => false,
        // Too many harmless numbers look like these. So their rules search around keywords, such as
        // the word before the number.
        Check::GermanTaxId | Check::SpanishId | Check::ItalianTaxCode => false,
        Check::DutchBsn | Check::PolishPesel => false,
    }
}

/// Calls `each` for every range that the rules with a numeric check must search, with the check.
pub(crate) fn runs(text: &[u8], mut each: impl FnMut(Check, Range<usize>)) {
    let mut at = 0;
    // A run of the minimum length cannot lie between two positions that are checked here.
    while at + LEAST <= text.len() {
        let probe = at + LEAST - 1;
        if !NUMBER[usize::from(text[probe])] {
            at = probe + 1;
            continue;
        }
        let is_end = |idx: &usize| !NUMBER[usize::from(text[*idx])];
        let start = (at..probe).rev().find(is_end).map_or(at, |idx| idx + 1);
        let end = (probe..text.len()).find(is_end).unwrap_or(text.len());
        for check in kinds(&text[start..end]) {
            // Rules also look at the byte before a number, such as the quote in `"93.184.216.34"`.
            each(check, start.saturating_sub(1)..end);
        }
        lettered(text, start..end, &mut each);
        at = end.max(at + 1);
    }
    for colon in memchr::memchr_iter(b':', text) {
        // Assigned addresses begin with 2 or 3, and their first group has four digits.
        let first = colon.checked_sub(4).map(|start| &text[start..colon]);
        if let Some([b'2' | b'3', rest @ ..]) = first
            && rest.iter().all(u8::is_ascii_hexdigit)
        {
            each(Check::PublicIpv6, colon.saturating_sub(6)..text.len().min(colon + 48));
        }
    }
}

/// The checks that a run of digits and punctuation may satisfy, judged by how many digits, dots and
/// other signs it has.
fn kinds(run: &[u8]) -> impl Iterator<Item = Check> {
    let digits = run.iter().filter(|byte| byte.is_ascii_digit()).count();
    let dots = run.iter().filter(|byte| **byte == b'.').count();
    let dashes = run.iter().filter(|byte| **byte == b'-').count();
    let dialled = run.iter().filter(|byte| matches!(byte, b'+' | b'(')).count();
    let kinds = [
        (digits >= 13).then_some(Check::Card),
        (digits >= 4 && dots >= 3).then_some(Check::PublicIpv4),
        (digits >= 9 && (dashes >= 2 || dialled > 0)).then_some(Check::Phone),
        (digits >= 9 && dashes >= 2).then_some(Check::UsSsn),
        (digits >= 11 && dots >= 2 && dashes > 0).then_some(Check::BrazilianCpf),
        (digits >= 12).then_some(Check::FrenchNir),
    ];
    kinds.into_iter().flatten()
}

/// Calls `each` for what may be a bank account number or a national insurance number near the start
/// of a run of digits: two capital letters, followed by a digit or a space.
fn lettered(text: &[u8], run: Range<usize>, each: &mut impl FnMut(Check, Range<usize>)) {
    let from = run.start.saturating_sub(9);
    let near = &text[from..text.len().min(run.start + 6)];
    let capitals = (0..near.len().saturating_sub(3))
        .filter(|&at| near[at].is_ascii_uppercase() && near[at + 1].is_ascii_uppercase());
    for at in capitals {
        let start = (from + at).saturating_sub(1);
        if near[at + 2].is_ascii_digit() && near[at + 3].is_ascii_digit() {
            each(Check::Iban, start..text.len().min(start + 48));
        }
        if near[at + 2].is_ascii_digit() || near[at + 2] == b' ' {
            each(Check::UkNino, start..text.len().min(start + 16));
        }
    }
}

const NUMBER: [bool; 256] = {
    let mut table = [false; 256];
    let set = b"0123456789.()+- ";
    let mut idx = 0;
    while idx < set.len() {
        table[set[idx] as usize] = true;
        idx += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found() {
        let found = |text: &str| {
            let mut found = Vec::new();
            runs(text.as_bytes(), |check, run| found.push((check, text[run].to_owned())));
            found
        };
        let call = (Check::Phone, "l +1 (212) 736-5000 ".to_owned());
        assert_eq!(found("call +1 (212) 736-5000 now"), [call]);
        let address = (Check::PublicIpv4, "t 93.184.216.34".to_owned());
        assert_eq!(found("at 93.184.216.34, or"), [address]);
        let quoted = (Check::PublicIpv4, "\"93.184.216.34".to_owned());
        assert_eq!(found("ip=\"93.184.216.34\""), [quoted]);
        let card = (Check::Card, "4111-1111-1111-1111".to_owned());
        assert_eq!(found("4111-1111-1111-1111")[0], card);
        let six = (Check::PublicIpv6, "2606:4700::1111".to_owned());
        assert_eq!(found("2606:4700::1111"), [six]);
        for text in ["line 12 of a decade", "2026-11-18T10:00:01.000Z", "version 12.0.1"] {
            assert_eq!(found(text), [], "{text}");
        }
    }
}
