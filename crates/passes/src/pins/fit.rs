//! Makes pins fit a budget: shortens them, or drops some of them and lists their names.

use std::collections::HashSet;

use epitome_model::{Counter, Tokens};

use super::{Pin, PinKind, commanding_parts};

/// The share of a budget, in per cent, that pins may have before they are shortened.
const SHARE: u64 = 25;
/// A rule file or skill with at most this many tokens is not reduced to its most important lines.
const SMALL: u64 = 300;
/// Minimum bytes of a line that is removed because a newer pin contains the same line.
const LINE: usize = 24;

/// Shortens pins (content that sets rules for the agent) if together they have more than a quarter
/// of the budget. First, lines that a newer pin of the same kind has, too, are removed. Then long
/// rule files and skills are reduced to their most important lines, the longest first, until the
/// pins together have at most the quarter, or none can be reduced further. A pin without any text
/// left is dropped.
pub fn shorten_to_fit(mut pins: Vec<Pin>, budget: Tokens, counter: &dyn Counter) -> Vec<Pin> {
    let most = budget.0 * SHARE / 100;
    if pins.iter().map(|pin| counter.count(&pin.text).0).sum::<u64>() <= most {
        return pins;
    }
    remove_repeated_lines(&mut pins, |_| true);
    let mut sizes: Vec<u64> = pins.iter().map(|pin| counter.count(&pin.text).0).collect();
    let mut order: Vec<usize> = (0..pins.len()).collect();
    order.sort_by_key(|&n| std::cmp::Reverse(sizes[n]));
    for n in order {
        if sizes.iter().sum::<u64>() <= most || sizes[n] <= SMALL {
            break;
        }
        match pins[n].kind {
            PinKind::RuleFile | PinKind::Skill => {
                pins[n].text = commanding_parts(&pins[n].text);
                sizes[n] = counter.count(&pins[n].text).0;
            }
            PinKind::Plan | PinKind::Todo | PinKind::Marked => {}
        }
    }
    pins.retain(|pin| !pin.text.trim().is_empty());
    pins
}

/// Splits pins into those that fit and those that do not. If they have more than `most` tokens
/// together, the oldest texts that the user marked are dropped first, then the oldest other pins;
/// one pin is always kept.
pub fn split_by_budget(
    mut pins: Vec<Pin>,
    most: Tokens,
    counter: &dyn Counter,
) -> (Vec<Pin>, Vec<Pin>) {
    let sizes: Vec<u64> = pins.iter().map(|pin| counter.count(&pin.text).0).collect();
    let mut order: Vec<usize> = (0..pins.len()).collect();
    order.sort_by_key(|&n| pins[n].kind != PinKind::Marked);
    let mut total = sizes.iter().sum::<u64>();
    let mut goes = HashSet::new();
    for n in order {
        if total <= most.0 || goes.len() + 1 == pins.len() {
            break;
        }
        total -= sizes[n];
        goes.insert(n);
    }
    let mut at = 0;
    let left_out = pins.extract_if(.., |_| {
        at += 1;
        goes.contains(&(at - 1))
    });
    let left_out = left_out.collect();
    (pins, left_out)
}

/// The distinct names of pins, each with the number of its occurrences if it has several.
pub fn pin_names(pins: &[Pin]) -> Vec<String> {
    let mut counts: Vec<(&str, u64)> = Vec::new();
    for pin in pins {
        match counts.iter_mut().find(|(name, _)| *name == pin.name) {
            Some((_, times)) => *times += 1,
            None => counts.push((&pin.name, 1)),
        }
    }
    let names = counts.into_iter().map(|(name, times)| match times {
        1 => name.to_owned(),
        times => format!("{name} ({times} times)"),
    });
    names.collect()
}

/// Removes lines of at least `LINE` bytes that are also in a newer pin of the same kind. Pins of
/// kinds for which `wanted` is false stay as they are.
pub fn remove_repeated_lines(pins: &mut [Pin], wanted: impl Fn(PinKind) -> bool) {
    let mut seen_lines: HashSet<(PinKind, String)> = HashSet::new();
    for pin in pins.iter_mut().rev().filter(|pin| wanted(pin.kind)) {
        let lines = pin.text.lines().filter(|line| {
            let line = line.trim();
            line.len() < LINE || !seen_lines.contains(&(pin.kind, line.to_owned()))
        });
        let lines: Vec<&str> = lines.collect();
        let text = lines.join("\n");
        seen_lines.extend(pin.text.lines().map(|line| (pin.kind, line.trim().to_owned())));
        if text.len() < pin.text.trim_end().len() {
            pin.text = text;
        }
    }
}

#[cfg(test)]
mod tests {
    use samples::Quarters;

    use super::super::PinSource;
    use super::*;

    fn pin(kind: PinKind, name: &str, text: &str) -> Pin {
        let (name, text) = (name.to_owned(), text.to_owned());
        Pin { item: 0, block: 0, kind, name, source: PinSource::File, text }
    }

    fn texts(pins: Vec<Pin>) -> Vec<String> {
        pins.into_iter().map(|pin| format!("{}: {}", pin.name, pin.text)).collect()
    }

    #[test]
    fn long_pins_are_reduced_to_what_commands_and_small_ones_stay_whole() {
        let long = format!("{}\nNever push to main.\n<pin>Port 80.</pin>", "Words. ".repeat(200));
        let pins = || {
            vec![
                pin(PinKind::RuleFile, "a", &long),
                pin(PinKind::Skill, "b", "Colours are nice."),
                pin(PinKind::Plan, "c", &"Build it. ".repeat(200)),
            ]
        };
        assert_eq!(shorten_to_fit(pins(), Tokens(20_000), &Quarters), pins(), "they fit");
        let plan = format!("c: {}", "Build it. ".repeat(200));
        let rules = "a: Never push to main.\n<pin>Port 80.</pin>".to_owned();
        let found = texts(shorten_to_fit(pins(), Tokens(1_200), &Quarters));
        assert_eq!(found, [rules, "b: Colours are nice.".to_owned(), plan]);
    }

    #[test]
    fn what_does_not_fit_is_the_oldest_and_what_the_user_marked_goes_first() {
        let pins = || {
            vec![
                pin(PinKind::RuleFile, "a", "Four tokens are 16."),
                pin(PinKind::Marked, "the user", "Four tokens are 1."),
                pin(PinKind::RuleFile, "b", "Four tokens are 16."),
                pin(PinKind::Marked, "the user", "Four tokens are 2."),
            ]
        };
        let user = "the user (2 times)";
        for (most, kept, left_out) in [
            (20, vec!["a", "the user (2 times)", "b"], vec![]),
            (15, vec!["a", "b", "the user"], vec!["the user"]),
            (10, vec!["a", "b"], vec![user]),
            (9, vec!["b"], vec!["a", user]),
            (1, vec!["b"], vec!["a", user]),
        ] {
            let (found, gone) = split_by_budget(pins(), Tokens(most), &Quarters);
            assert_eq!(
                (pin_names(&found), pin_names(&gone)),
                (owned(&kept), owned(&left_out)),
                "{most}"
            );
        }
    }

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_line_that_a_newer_one_of_its_kind_has_is_said_once() {
        let line = "A line of more than twenty-four bytes.";
        let mut pins = vec![
            pin(PinKind::Plan, "old", &format!("First.\n{line}")),
            pin(PinKind::Skill, "other", line),
            pin(PinKind::Plan, "new", &format!("  {line}\nFirst.")),
        ];
        remove_repeated_lines(&mut pins, |kind| kind == PinKind::Plan);
        let expect =
            ["old: First.".to_owned(), format!("other: {line}"), format!("new:   {line}\nFirst.")];
        assert_eq!(texts(pins), expect);
    }
}
