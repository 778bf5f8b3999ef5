//! A long session in a small window: 500 turns, more than 2 million tokens of results, and never
//! more than 50,000 in a request. After each compaction, services accept the request and the user's
//! demands are in it, and a fact of the third turn is found with `recall`.

mod driver;

use driver::Driver;
use epitome_model::Tokens;
use epitome_passes::{PerKind, Target, built_in};
use serde_json::json;

const WINDOW: u64 = 50_000;
const TURNS: usize = 500;
/// The least tokens of all results, at four bytes per token.
const PRODUCED: usize = 4_000 * TURNS;
/// The user's demands, and the turn of each.
const RULES: [(usize, &str); 5] = [
    (0, "Always write the tests first, whatever I ask."),
    (7, "From now on never touch the folder vendor/legacy."),
    (20, "Use tabs in Makefiles, and nothing else, until I say otherwise."),
    (61, "Do not rename anything that is public."),
    (331, "Never call the network in tests."),
];
const FACT: &str = "release token tk-93571-azure for shard 17";

/// A turn with two parallel calls with long results. Returns the bytes of the results.
fn turn(driver: &mut Driver, n: usize) -> usize {
    let rule = RULES.iter().find(|(turn, _)| *turn == n);
    let words = rule.map_or_else(|| format!("Step {n}: look at module {n}."), |it| it.1.into());
    driver.user(&words);
    let texts = [result(n, 0), result(n, 1)];
    let ids = [0, 1].map(|part| format!("c{n}_{part}"));
    let path = |part: usize| json!({"path": format!("src/module_{n}/part_{part}.rs")});
    let call = |part: usize| (&*ids[part], "read", path(part), &*texts[part]);
    driver.calls(&[call(0), call(1)]);
    driver.says(&format!("Module {n} computes what it should."));
    texts.iter().map(String::len).sum()
}

/// The text of a file without equal lines.
fn result(n: usize, part: usize) -> String {
    let line = |k: usize| {
        let value = (n * 7919 + part * 104_729 + k * 1_299_709) % 1_000_003;
        let fact = if (n, part, k) == (3, 1, 77) { FACT } else { "plain" };
        format!("    let item_{k} = table.entry({value}).or_insert(\"{fact}\");\n")
    };
    (0..150).map(line).collect()
}

#[test]
fn hundreds_of_turns_fit_into_a_small_window_and_nothing_is_lost() {
    let mut recipe = built_in("digest").expect("a built-in recipe");
    recipe.target = PerKind::for_both(Some(Target::from_tokens(Tokens(12_000))));
    let mut driver = Driver::new(recipe, WINDOW);
    let (mut produced, mut compactions) = (0, 0);
    for n in 0..TURNS {
        produced += turn(&mut driver, n);
        let changes = driver.changes();
        let now = changes.iter().filter(|change| change.contains("compacted")).count();
        if now > compactions {
            compactions = now;
            driver.accepted();
            let body = driver.body().to_string();
            for (_, rule) in RULES.iter().filter(|(turn, _)| *turn <= n) {
                assert!(body.contains(rule), "after turn {n} it is gone: {rule}");
            }
        }
    }
    assert!(produced / 4 > PRODUCED, "{produced} bytes of results");
    assert!(driver.largest <= Tokens(WINDOW), "a request of {} tokens", driver.largest);
    assert!(compactions > TURNS / 10, "{compactions} compactions");

    // Two calls per turn, counted from 1: the fact is in the eighth call.
    driver.user("What was the release token in module 3?");
    driver.calls(&[("r", "recall", json!({"ref": "#8", "search": "release token"}), "")]);
    let (_, text) = driver.results().pop().expect("a result");
    assert!(text.contains(FACT), "{text}");
    driver.says("tk-93571-azure");
    driver.accepted();
    println!("{produced} bytes, largest request {}, {compactions} compactions", driver.largest);
}
