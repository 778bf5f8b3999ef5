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
    assert_snapshot!(world.run(&["proxy", "--stats"]), @r"
    $ epitome proxy --stats
    day         requests  input  cached  written  output   cost  unchanged  change
    2026-11-20         2     20  180.0k     4.0k    1.0k  $0.07      $0.05  +47.4%
    2026-11-21        12    100  900.0k    20.0k    5.0k  $0.13      $0.19  -33.9%
    total             14    120    1.1M    24.0k    6.0k  $0.20      $0.24  -17.0%
    tokens: what the services counted, and about 732.0k less than unchanged; cost: list prices of 2026-11-21; unchanged: estimated, the prices of the cache included
    14 requests in 2 conversations: 3 sent as they came, 9 as decided before, 1 with new results shortened, 1 with a cut
    2 requests without a count from the service, in no sum of tokens
    1 request of unknown price, in no cost
    1 request answered with an error
    1 request whose response ended early
    1 request in which something passed unchanged after an error of epitome
    models asked 9 removed texts back

    cuts
    made              model             rewritten  price  requests  not sent  saved  gain so far
    2026-11-20 10:00  claude-haiku-4-5      40.0k  $0.05        10    600.0k  $0.06        $0.01
    --- status 0
    ");
    assert_snapshot!(world.run(&["proxy", "--stats", "--by", "model", "--since", "1d"]), @r"
    $ epitome proxy --stats --by model --since 1d
    model             requests  input  cached  written  output   cost  unchanged  change
    claude-haiku-4-5        11     90  810.0k    18.0k    4.5k  $0.13      $0.19  -33.9%
    evil ␛[2J model          1     10   90.0k     2.0k     500      -          -       -
    total                   12    100  900.0k    20.0k    5.0k  $0.13      $0.19  -33.9%
    tokens: what the services counted, and about 648.0k less than unchanged; cost: list prices of 2026-11-21; unchanged: estimated, the prices of the cache included
    12 requests in 2 conversations: 3 sent as they came, 9 as decided before, 0 with new results shortened, 0 with a cut
    2 requests without a count from the service, in no sum of tokens
    1 request of unknown price, in no cost
    1 request answered with an error
    1 request whose response ended early
    1 request in which something passed unchanged after an error of epitome
    models asked 9 removed texts back
    --- status 0
    ");
    for by in ["day", "model", "agent"] {
        let json = world.json(&["proxy", "--stats", "--by", by, "--json"]);
        world::check("proxy.schema.json", &json);
    }
    assert_snapshot!(World::new().run(&["proxy", "--stats"]), @r"
    $ epitome proxy --stats
    no requests
    --- stderr
    `epitome wrap claude` sends some through the proxy
    --- status 0
    ");
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
    assert_snapshot!(few.run(&["proxy", "--stats"]), @r"
    $ epitome proxy --stats
    day         requests  input  cached  written  output   cost  unchanged  change
    2026-11-20         3     30  270.0k     6.0k    1.5k  $0.06      $0.06      0%
    total              3     30  270.0k     6.0k    1.5k  $0.06      $0.06      0%
    tokens: what the services counted, and about 0 less than unchanged; cost: list prices of 2026-11-21; unchanged: estimated, the prices of the cache included
    3 requests in 3 conversations: 3 sent as they came, 0 as decided before, 0 with new results shortened, 0 with a cut

    conversations held out
                             treated  held out  difference (95%)
    conversations                  1         2
    turns                          1         2
    requests                       1         2
    input tokens a request     92.0k     92.0k
    of them from a cache         98%       98%
    output tokens a request      500       500
    cost a request           $0.0140   $0.0220
    cost a turn              $0.0140   $0.0220
    too few to compare: each group needs 20 conversations with a known price
    --- status 0
    ");
    world::check("proxy.schema.json", &few.json(&["proxy", "--stats", "--json"]));
    let mut lines: Vec<LedgerLine> = (0..20).map(held_out).collect();
    lines.extend((0..20).map(|n| line(20, n)));
    lines.push(LedgerLine { group: Group::Treated, ..held_out(0) });
    lines.push(held_out(30));
    let many = world(&lines);
    assert_snapshot!(many.run(&["proxy", "--stats"]), @r"
    $ epitome proxy --stats
    day         requests  input  cached  written  output   cost  unchanged  change
    2026-11-20        42    420    3.8M    84.0k   21.0k  $0.76      $0.76      0%
    total             42    420    3.8M    84.0k   21.0k  $0.76      $0.76      0%
    tokens: what the services counted, and about 0 less than unchanged; cost: list prices of 2026-11-21; unchanged: estimated, the prices of the cache included
    42 requests in 41 conversations: 42 sent as they came, 0 as decided before, 0 with new results shortened, 0 with a cut

    conversations held out
                             treated  held out         difference (95%)
    conversations                 20        20
    turns                         20        20
    requests                      20        20
    input tokens a request     92.0k     92.0k
    of them from a cache         98%       98%
    output tokens a request      500       500
    cost a request           $0.0140   $0.0220  -36.3% (-37.6 to -35.0)
    cost a turn              $0.0140   $0.0220  -36.3% (-37.6 to -35.0)
    1 conversation in both groups, because --holdout changed, in neither sum
    --- status 0
    ");
    world::check("proxy.schema.json", &many.json(&["proxy", "--stats", "--json"]));
}
