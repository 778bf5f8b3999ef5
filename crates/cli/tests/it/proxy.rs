//! `epitome proxy` on the command line: what was sent through it so far.

use epitome::Config;
use epitome::archive::Hash;
use epitome::wire::Chain;
use epitome::wire::ledger::{End, Group, Ledger, LedgerLine, MadeCut, Treatment, UsedCut};
use epitome_model::{MicroDollars, TokenUsage, Tokens};
use insta::assert_snapshot;

use crate::world::{self, World};

/// A request of a conversation on a day of November.
fn line(day: u8, conversation: u8) -> LedgerLine {
    LedgerLine {
        time: format!("2026-11-{day:02}T10:00:00Z").parse().expect("a time"),
        run: "00c0ffee".into(),
        agent: Some("claude".into()),
        api: "anthropic".into(),
        model: Some("claude-haiku-4-5".into()),
        session: Some(Chain::from_bytes([conversation; 16])),
        status: Some(200),
        turn: true,
        usage: Some(TokenUsage {
            input: Tokens(10),
            cached: Tokens(90_000),
            cache_written: Tokens(2_000),
            output: Tokens(500),
        }),
        cost: Some(MicroDollars(14_010)),
        unchanged_cost: Some(MicroDollars(14_010)),
        ..LedgerLine::default()
    }
}

/// A world with a ledger.
fn world(lines: &[LedgerLine]) -> World {
    let world = World::new();
    let ledger = Ledger::new(&Config::from_home(&world.home).wire_memo());
    for line in lines {
        ledger.append(line).expect("a disk");
    }
    world
}

fn all_kinds() -> Vec<LedgerLine> {
    let id = Chain::from_bytes([9; 16]);
    let price = Some(MicroDollars(46_000));
    let used = |saved| vec![UsedCut { id, tokens: Tokens(60_000), saved: Some(saved) }];
    let shortened = LedgerLine {
        treatment: Treatment::Shortened,
        shortened: 2,
        saved: Tokens(12_000),
        unchanged_cost: Some(MicroDollars(29_010)),
        ..line(20, 1)
    };
    let cut = LedgerLine {
        treatment: Treatment::Cut,
        cut: Some(MadeCut { id, rewritten: Tokens(40_000), price }),
        cuts: used(MicroDollars(6_000)),
        saved: Tokens(72_000),
        cost: Some(MicroDollars(60_010)),
        unchanged_cost: Some(MicroDollars(21_210)),
        ..line(20, 1)
    };
    let later = LedgerLine {
        treatment: Treatment::Known,
        cuts: used(MicroDollars(6_000)),
        saved: Tokens(72_000),
        unchanged_cost: Some(MicroDollars(21_210)),
        recalled: vec![Hash::compute(b"a text")],
        ..line(21, 1)
    };
    let unknown = LedgerLine {
        agent: None,
        model: Some("evil \u{1b}[2J model".into()),
        cost: None,
        unchanged_cost: None,
        ..line(21, 2)
    };
    let refused = LedgerLine { usage: None, cost: None, status: Some(529), ..line(21, 1) };
    let broken = LedgerLine { usage: None, end: End::Interrupted, failed: true, ..line(21, 1) };
    let mut lines = vec![shortened, cut];
    lines.extend(std::iter::repeat_n(later, 9));
    lines.extend([unknown, refused, broken]);
    lines
}

#[test]
fn what_was_sent_is_summed_by_day_model_or_agent() {
    let world = world(&all_kinds());
    assert_snapshot!("by_day", world.run(&["proxy", "--stats"]));
    assert_snapshot!(
        "by_model",
        world.run(&["proxy", "--stats", "--by", "model", "--since", "1d"])
    );
    for by in ["day", "model", "agent"] {
        let json = world.json(&["proxy", "--stats", "--by", by, "--json"]);
        world::check("proxy.schema.json", &json);
    }
    assert_snapshot!("nothing", World::new().run(&["proxy", "--stats"]));
    assert_eq!(world.status(&["proxy", "--stats", "--dry-run"]), 2);
    assert_eq!(world.status(&["proxy", "--by", "model"]), 2);
    assert_eq!(world.status(&["proxy", "--holdout", "101"]), 2);
}

#[test]
fn conversations_held_out_are_next_to_the_others() {
    let held_out = |n: u8| {
        let cost = Some(MicroDollars(if n.is_multiple_of(2) { 21_000 } else { 23_000 }));
        LedgerLine { group: Group::Holdout, cost, unchanged_cost: cost, ..line(20, 100 + n) }
    };
    let few = world(&[line(20, 1), held_out(1), held_out(2)]);
    assert_snapshot!("few", few.run(&["proxy", "--stats"]));
    world::check("proxy.schema.json", &few.json(&["proxy", "--stats", "--json"]));
    let mut lines: Vec<LedgerLine> = (0..20).map(held_out).collect();
    lines.extend((0..20).map(|n| line(20, n)));
    lines.push(LedgerLine { group: Group::Treated, ..held_out(0) });
    lines.push(held_out(30));
    let many = world(&lines);
    assert_snapshot!("many", many.run(&["proxy", "--stats"]));
    world::check("proxy.schema.json", &many.json(&["proxy", "--stats", "--json"]));
}
