//! Results that are recorded several times in a session: a compaction leaves one copy, or none.

use epitome::Loaded;
use epitome::compaction::PreparedCompaction;
use epitome_formats::find_format;
use epitome_model::{Block, Tokens};
use epitome_passes::{Keep, PerKind, Recipe, Target, built_in};
use epitome_tokens::Estimate;

/// A session in which each result is recorded twice.
fn session() -> Loaded<Vec<u8>> {
    let source = fixtures::get("gemini", "pricing").bytes();
    let format = find_format("gemini").expect("a known agent");
    let transcript = (format.read)(&source, &mut ());
    Loaded { format, source, transcript, faults: Vec::new() }
}

/// The number of results in these entries, and the number of results that are recorded again.
fn results<'a>(entries: impl Iterator<Item = (usize, &'a epitome_model::Entry)>) -> (usize, usize) {
    let blocks: Vec<&Block> = entries.flat_map(|(_, entry)| &entry.blocks).collect();
    let count = |is: fn(&Block) -> bool| blocks.iter().filter(|block| is(block)).count();
    (
        count(|block| matches!(block, Block::Output(_))),
        count(|block| matches!(block, Block::Repeated(_))),
    )
}

fn plan<'a>(session: &'a Loaded<Vec<u8>>, recipe: &'a Recipe) -> PreparedCompaction<'a, Vec<u8>> {
    let planned =
        PreparedCompaction::new(session, recipe, &Estimate).expect("the edits can be written");
    assert_eq!(planned.violations, []);
    planned
}

fn only(pass: &str) -> Recipe {
    let text = format!("name = \"only\"\nabout = \"One pass.\"\n[[passes]]\npass = \"{pass}\"\n");
    Recipe::parse(&text).expect("a recipe")
}

#[test]
fn what_is_said_again_goes_though_it_is_kept() {
    let session = session();
    let (first, again) = results(session.transcript.context());
    assert!(first > 9 && again == first, "{first} results, {again} of them again");
    let keep = Keep { turns: Some(99), ..Keep::default() };
    let recipe = Recipe { keep, ..built_in("epitome").expect("the default") };
    let planned = plan(&session, &recipe);
    assert_eq!(results(planned.after.context()), (first, 0));
    let invariants = session.format.invariants;
    let spliced = planned.spliced().expect("they lie apart");
    assert_eq!(invariants.check(&planned.after, &spliced), []);
    assert_eq!(invariants.check(&session.transcript, &session.source), []);
}

#[test]
fn an_edit_of_a_result_reaches_every_time_that_it_is_said() {
    let session = session();
    let recipe = only("results");
    let planned = plan(&session, &recipe);
    let edited: Vec<&str> = planned
        .plan
        .edits
        .iter()
        .filter_map(|planned| match planned.edit.at {
            epitome_model::At::Block { item, block } => {
                match &session.transcript.items[item].entry()?.blocks[block] {
                    Block::Output(output) => Some(&*output.call),
                    _ => None,
                }
            }
            _ => None,
        })
        .collect();
    assert!(!edited.is_empty());
    let left: Vec<&Block> = planned.after.context().flat_map(|(_, entry)| &entry.blocks).collect();
    for call in edited {
        let says = |block: &&&Block| match block {
            Block::Output(output) => *output.call == *call,
            Block::Repeated(again) => *again.output.call == *call,
            _ => false,
        };
        assert_eq!(left.iter().filter(says).count(), 1, "{call}");
    }
}

#[test]
fn what_loses_nothing_goes_before_a_target_is_looked_at() {
    let session = session();
    let copies = only("copies");
    let once = plan(&session, &copies).tokens_after;
    let default = built_in("epitome").expect("the default");
    let target = PerKind { stored: Some(Target::from_tokens(once)), live: None };
    let recipe = Recipe { target, keep: Keep::default(), ..default };
    let planned = plan(&session, &recipe);
    assert_eq!(planned.tokens_after, once, "nothing else had to go");
    let before = planned.plan.tokens_before;
    assert!(before > Tokens(once.0 * 3 / 2), "{before} were {once} and what was said again");
}
