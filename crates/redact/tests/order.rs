//! Numbers follow the order of a session, however many processors search it.

use std::collections::BTreeMap;

use epitome_redact::{Finder, Redactor, Rules};

/// A token that the rules find; a different one for each number.
fn token(n: u64) -> String {
    let letters = b"abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    let mut state = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut letter = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        char::from(letters[(state >> 33) as usize % letters.len()])
    };
    format!("ghp_{}", (0..36).map(|_| letter()).collect::<String>())
}

#[test]
fn secrets_are_numbered_as_they_first_stand() {
    // New tokens appear throughout, old tokens are repeated, and most lines have none.
    let holds = |line: u64| {
        line.is_multiple_of(3).then_some(if line.is_multiple_of(7) { line } else { line % 50 })
    };
    let mut session = String::new();
    let mut numbers: BTreeMap<u64, u32> = BTreeMap::new();
    let mut expect = Vec::new();
    for line in 0..6_000 {
        let words = "nothing to see here, move along. ".repeat(4);
        let line_text = holds(line).map_or(words.clone(), |n| format!("{words}{}", token(n)));
        session.push_str(&format!("{{\"said\":\"{line_text}\"}}\n"));
        if let Some(n) = holds(line) {
            let next = numbers.len() as u32 + 1;
            expect.push((line + 1, *numbers.entry(n).or_insert(next)));
        }
    }
    let finder = Finder::new(Rules::built_in()).expect("rules");
    let mut redactor = Redactor::new(&finder);
    let splices = redactor.splices(&session.as_bytes(), &[]);
    let found: Vec<(u64, u32)> =
        redactor.found().iter().map(|found| (found.line, found.number)).collect();
    assert_eq!(found, expect);
    assert_eq!(splices.len(), expect.len());
}
