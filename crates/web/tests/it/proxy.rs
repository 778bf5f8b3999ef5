//! The page of the proxy.

use epitome::wire::Chain;
use epitome::wire::ledger::{Group, Ledger, LedgerLine, MadeCut, Treatment, UsedCut};
use epitome_model::{MicroDollars, TokenUsage, Tokens};
use epitome_web::Which;

use crate::world::World;

fn line(model: &str) -> LedgerLine {
    let usage = TokenUsage { cached: Tokens(90_000), ..TokenUsage::default() };
    LedgerLine {
        time: "2026-11-20T10:00:00Z".parse().expect("a time"),
        api: "anthropic".into(),
        model: Some(model.into()),
        session: Some(Chain::from_bytes([1; 16])),
        usage: Some(TokenUsage { output: Tokens(10_000), ..usage }),
        cost: Some(MicroDollars(60_000)),
        unchanged_cost: Some(MicroDollars(80_000)),
        ..LedgerLine::default()
    }
}

#[test]
fn what_was_sent_is_shown_and_what_is_not_known_is_said() {
    let world = World::new();
    let id = Chain::from_bytes([2; 16]);
    let cut = LedgerLine {
        treatment: Treatment::Cut,
        cut: Some(MadeCut { id, rewritten: Tokens(40_000), price: Some(MicroDollars(46_000)) }),
        cuts: vec![UsedCut { id, tokens: Tokens(60_000), saved: Some(MicroDollars(6_000)) }],
        ..line("claude-haiku-4-5")
    };
    let held_out = LedgerLine {
        session: Some(Chain::from_bytes([3; 16])),
        group: Group::Holdout,
        ..line("claude-haiku-4-5")
    };
    let unknown = LedgerLine { cost: None, unchanged_cost: None, ..line("<i>x") };
    let ledger = Ledger::new(&world.config.wire_memo());
    for line in [cut, held_out, unknown] {
        ledger.append(&line).expect("a disk");
    }
    let viewer = world.serve(Which::All);
    let page = viewer.get("proxy");
    assert_eq!(page.status, 200);
    for expect in [
        "<title>Proxy · epitome</title>",
        "<dt>conversations</dt><dd>2</dd>",
        "<dt>input tokens, 100% from a cache</dt><dd>270.0k</dd>",
        "<dt>cost, -25.0%</dt><dd>$0.12</dd>",
        "<dt>if unchanged, estimated</dt><dd>$0.16</dd>",
        "<li>1 request of unknown price, in no cost</li>",
        "<bdi>&lt;i&gt;x</bdi>",
        "<td class=\"number\">40.0k</td><td class=\"number\">$0.05</td>",
        "too few to compare: each group needs 20 conversations",
        "aria-current=\"page\">Proxy</a>",
    ] {
        assert!(page.body.contains(expect), "{expect}: {}", page.body);
    }
    assert_eq!(viewer.get("proxy?days=7").status, 400);
}

#[test]
fn without_requests_it_says_how_to_make_some() {
    let world = World::new();
    let viewer = world.serve(Which::All);
    let body = viewer.get("proxy").body;
    assert!(body.contains("Nothing was sent through the proxy yet"), "{body}");
    let body = viewer.get("proxy?days=30").body;
    assert!(body.contains("No request in the last 30 days"), "{body}");
}
