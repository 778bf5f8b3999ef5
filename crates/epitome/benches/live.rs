//! Speed of a live context: of a view of 10,000 messages when no compaction is due, and of a
//! compaction of 200,000 tokens.
//!
//! `cargo bench -p epitome --bench live`.

use divan::{Bencher, black_box};
use epitome::live::{Context, MessagePart, Setup};
use epitome_model::Tokens;
use epitome_passes::{Recipe, built_in};

fn main() {
    divan::main();
}

const RECIPES: [&str; 4] = ["epitome", "clear-tool-uses", "ion", "gitclaw"];

/// A context of about `messages` messages. Every second one is a result with `lines` lines.
fn talk(recipe: Recipe, messages: usize, lines: usize) -> Context {
    let setup = Setup::new(recipe).with_window(Tokens(10_000_000));
    let mut context = Context::in_memory(setup);
    context.user("Read all of it.").expect("memory is written");
    for n in 0..messages / 2 {
        let id = n.to_string();
        let arguments = format!(r#"{{"path":"src/module_{n}/file.rs"}}"#);
        context
            .assistant(&[MessagePart::call(id.clone(), "Read", arguments)])
            .expect("it is memory");
        let text: String = (0..lines)
            .map(|line| format!("    let value_{line} = compute_{n}(input, {line})?;\n"))
            .collect();
        context.tool(&[MessagePart::output(id, text)]).expect("it is memory");
    }
    context
}

/// Ten thousand messages, without any compaction.
#[divan::bench(args = RECIPES)]
fn view_when_nothing_is_due(bencher: Bencher<'_, '_>, recipe: &str) {
    let mut recipe = built_in(recipe).expect("a built-in recipe");
    recipe.trigger = Default::default();
    let mut context = talk(recipe, 10_000, 5);
    assert!(context.events().is_empty());
    bencher
        .bench_local(|| black_box(context.view().expect("it is memory").transcript().items.len()));
}

/// Pushes one more message, and makes the view with it.
#[divan::bench]
fn push_and_view(bencher: Bencher<'_, '_>) {
    let mut context = talk(built_in("epitome").expect("a built-in recipe"), 10_000, 5);
    bencher.bench_local(|| {
        context.user("Go on, please.").expect("it is memory");
        black_box(context.view().expect("it is memory").transcript().items.len())
    });
}

/// The passes over 200,000 tokens, including writing them to the log and counting the result.
#[divan::bench(args = RECIPES, sample_count = 20, sample_size = 1)]
fn compaction_at_200k_tokens(bencher: Bencher<'_, '_>, recipe: &str) {
    let recipe = built_in(recipe).expect("a built-in recipe");
    bencher
        .with_inputs(|| {
            let mut recipe = recipe.clone();
            recipe.trigger = Default::default();
            recipe.stages.live.ingest = None;
            let context = talk(recipe, 200, 142);
            let tokens = context.usage().tokens;
            assert!((190_000..215_000).contains(&tokens.0), "{tokens}");
            context
        })
        .bench_local_values(|mut context| {
            context.compact(None).expect("it is memory");
            context
        });
}
