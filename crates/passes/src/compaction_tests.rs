use epitome_model::FieldRole;
use epitome_model::ToolKind::{Read, Shell, Write};
use samples::{Quarters, Sample};

use super::*;
use crate::testing::{describe, lines};

/// Four commands, each with a result of 20 lines.
fn sample() -> Sample {
    let run = |sample: Sample, command| sample.call(Shell, command).output(&lines(20));
    ["a", "b", "c", "d"].into_iter().fold(Sample::new().user("Go."), run).reply("Done.")
}

fn recipe(text: &str) -> Recipe {
    let passes = "[[passes]]\npass = 'results'\nstyle = 'counted'\n";
    Recipe::parse(&format!("name = 'x'\nabout = ''\n{text}\n{passes}")).expect("a recipe")
}

fn run(sample: &Sample, recipe: &Recipe) -> Plan {
    let options = Options {
        kind: ContextKind::Stored,
        counter: &Quarters,
        thinking_is_bound: |model| model == "bound",
        counted: &[],
    };
    plan_edits(sample.transcript(), sample.source(), recipe, &options)
}

const ALL: [&str; 4] = [
    "2 = [output: 20 lines]",
    "4 = [output: 20 lines]",
    "6 = [output: 20 lines]",
    "8 = [output: 20 lines]",
];

#[test]
fn a_recipe_makes_the_edits_of_its_passes_and_counts_what_they_save() {
    let compaction = run(&sample(), &recipe(""));
    assert_eq!(describe(&compaction.edits()), ALL);
    assert_eq!(compaction.by_pass(), BTreeMap::from([("results", 4)]));
    // A result of 479 bytes has 120 tokens, and its replacement of 20 bytes has five.
    assert!(compaction.edits.iter().all(|planned| planned.tokens == Tokens(115)));
    assert_eq!(compaction.tokens_before, weigh(&sample()));
}

fn weigh(sample: &Sample) -> Tokens {
    epitome_model::weigh(sample.transcript(), sample.source(), &Quarters).total()
}

#[test]
fn edits_end_once_the_target_is_reached() {
    let before = weigh(&sample()).0;
    for (saved, n) in [(0, 0), (1, 1), (115, 1), (116, 2), (1_000, 4)] {
        let target = before.saturating_sub(saved);
        let compaction = run(&sample(), &recipe(&format!("target = {target}")));
        assert_eq!(describe(&compaction.edits()), ALL[..n], "{saved} tokens less");
    }
}

#[test]
fn a_pass_that_has_begun_ends_where_the_recipe_stops_after_passes() {
    let text = format!("target = {}\nstop = 'pass'", weigh(&sample()).0 - 1);
    assert_eq!(describe(&run(&sample(), &recipe(&text)).edits()), ALL);
}

#[test]
fn a_trigger_that_is_not_reached_plans_nothing() {
    let tokens = weigh(&sample()).0;
    let compaction = run(&sample(), &recipe(&format!("trigger = {{ tokens = {} }}", tokens + 1)));
    assert_eq!((compaction.edits.len(), compaction.not_reached.is_some()), (0, true));
    let compaction = run(&sample(), &recipe(&format!("trigger = {{ tokens = {tokens} }}")));
    assert_eq!((compaction.edits.len(), compaction.not_reached), (4, None));
}

#[test]
fn edits_that_save_too_little_together_are_not_made() {
    let compaction = run(&sample(), &recipe("at_least = 461"));
    assert_eq!((compaction.edits.len(), compaction.saving_below_minimum), (0, Some(Tokens(460))));
    let compaction = run(&sample(), &recipe("at_least = 460"));
    assert_eq!((compaction.edits.len(), compaction.saving_below_minimum), (4, None));
}

#[test]
fn what_is_kept_and_what_is_exempt_stays() {
    let compaction = run(&sample(), &recipe("keep = { results = 2 }"));
    assert_eq!(describe(&compaction.edits()), ALL[..2]);
    let compaction = run(&sample(), &recipe("exempt_tools = ['SHELL']"));
    assert_eq!(describe(&compaction.edits()), [""; 0]);
}

#[test]
fn a_repeated_result_of_an_exempt_tool_stays() {
    let sample = Sample::new().call(Shell, "a").output("x").output("x").with(|entry| {
        let Some(Block::Output(output)) = entry.blocks.pop() else { panic!("it is a result") };
        let whole = output.whole;
        entry.blocks.push(Block::Repeated(RepeatedOutput { output, whole }));
    });
    let edits = |exempt: &str| {
        let text = format!("name = 'x'\nabout = ''\n{exempt}\n[[passes]]\npass = 'copies'\n");
        describe(&run(&sample, &Recipe::parse(&text).expect("a recipe")).edits())
    };
    assert_eq!(edits(""), ["2 gone"]);
    assert_eq!(edits("exempt_tools = ['Shell']"), [""; 0]);
}

#[test]
fn reasoning_that_is_bound_to_what_comes_before_goes_after_an_edit() {
    let think = |sample: Sample, model: &str| {
        sample.thinking("Hm.").with(|entry| entry.model = Some(model.into())).reply("So.")
    };
    let sample = |model| {
        let sample = think(Sample::new().user("Go."), model);
        think(sample.call(Shell, "a").output(&lines(20)), model)
    };
    let edits = |model| describe(&run(&sample(model), &recipe("")).edits());
    assert_eq!(edits("free"), ["4 = [output: 20 lines]"]);
    assert_eq!(edits("bound"), ["4 = [output: 20 lines]", "5 gone"]);
}

#[test]
fn for_a_reader_nothing_is_kept_and_short_texts_go_too() {
    let sample = Sample::new().call(Shell, "a").output("short");
    let mut recipe = recipe("keep = { results = 2 }");
    assert_eq!(describe(&run(&sample, &recipe).edits()), [""; 0]);
    let edits = edits_for_reading(sample.transcript(), sample.source(), &recipe, &|_| None);
    assert_eq!(describe(&edits), ["1 = [output: 1 line]"]);
    recipe.exempt_tools.push("Shell".into());
    assert_eq!(edits_for_reading(sample.transcript(), sample.source(), &recipe, &|_| None), []);
}

/// The characters that a resume of the sample sends.
fn chars() -> u64 {
    let sample = sample();
    View::new(sample.transcript(), sample.source(), &Quarters).context_chars()
}

#[test]
fn edits_end_once_the_target_in_characters_is_reached() {
    // A result has 500 characters as JSON, with quotes and escapes; the replacement has 20.
    for (saved, n) in [(0, 0), (1, 1), (480, 1), (481, 2), (9_999, 4)] {
        let target = chars().saturating_sub(saved);
        let compaction = run(&sample(), &recipe(&format!("target_chars = {target}")));
        assert_eq!(describe(&compaction.edits()), ALL[..n], "{saved} characters less");
    }
}

#[test]
fn a_pass_waits_until_the_context_has_more_characters_than_it_allows() {
    for (over, n) in [(chars(), 0), (chars() - 1, 4)] {
        let pass = format!("pass = 'results'\nstyle = 'counted'\nover_chars = {over}");
        let text = format!("name = 'x'\nabout = ''\n[[passes]]\n{pass}\n");
        let compaction = run(&sample(), &Recipe::parse(&text).expect("a recipe"));
        assert_eq!(compaction.edits.len(), n, "over {over}");
    }
}

#[test]
fn results_of_a_stored_session_are_shortened_as_on_ingest_unless_a_pass_does_more() {
    let ingest = "[stages]\ningest = { batch = { chars = 100, over = 60, preview = 8 } }\n";
    let recipe = |rest: &str| {
        Recipe::parse(&format!("name = 'x'\nabout = ''\n{ingest}{rest}")).expect("a recipe")
    };
    let preview = |item: usize| format!("{item} = [epitome k#: shortened, 20 lines] / line 001");
    let alone = recipe("");
    let compaction = run(&sample(), &alone);
    assert_eq!(describe(&compaction.edits()), [2, 4, 6, 8].map(preview));
    assert_eq!(compaction.by_pass(), BTreeMap::from([("ingest", 4)]));
    let keep = Recipe { keep: crate::Keep { results: Some(2), ..Default::default() }, ..alone };
    assert_eq!(describe(&run(&sample(), &keep).edits()), [2, 4].map(preview));
    let exempt = Recipe { exempt_tools: vec!["shell".into()], ..keep };
    assert_eq!(describe(&run(&sample(), &exempt).edits()), [""; 0]);
    // An edit of a pass replaces the preview of the same result.
    let newest = "[[stages.passes]]\npass = 'results'\nstyle = 'counted'\nnewest = 1";
    let expect = [ALL[0], ALL[1], ALL[2], &preview(8)].map(str::to_owned);
    assert_eq!(describe(&run(&sample(), &recipe(newest)).edits()), expect);
    // In a live context, results were truncated when they arrived.
    let options = Options {
        kind: ContextKind::Live,
        counter: &Quarters,
        thinking_is_bound: |_| false,
        counted: &[],
    };
    let sample = sample();
    let live = plan_edits(sample.transcript(), sample.source(), &recipe(""), &options);
    assert_eq!(describe(&live.edits()), [""; 0]);
}

#[test]
fn lines_that_repeat_in_stored_results_are_left_out_once() {
    let recipe = Recipe::parse("name = 'x'\nabout = ''\nstages.ingest = { repeats = true }");
    let mut text = lines(60);
    let first = Sample::new().user("Go.").call(Shell, "a").output(&text);
    text.push_str("\nThe end.");
    let sample = first.call(Shell, "b").output(&text).reply("Done.");
    let edits = describe(&run(&sample, &recipe.expect("a recipe")).edits());
    let expect = "4 = [epitome k#: shortened, 61 lines] / [60 lines as above: Shell a] / The end.";
    assert_eq!(edits, [expect]);
}

#[test]
fn a_stored_file_that_was_read_has_a_cap_of_its_own() {
    let text = "name = 'x'\nabout = ''\nstages.ingest = { cap = 20, reads = 9_000 }";
    let recipe = Recipe::parse(text).expect("a recipe");
    let sample = Sample::new().user("Go.").call(Read, "a.rs").output(&lines(60));
    let sample = sample.call(Shell, "a").output(&lines(60)).reply("Done.");
    let edits = run(&sample, &recipe).edits();
    let items: Vec<usize> = edits.iter().map(|edit| edit.at.item()).collect();
    assert_eq!(items, [4], "the result of the command alone");
}

#[test]
fn what_a_summary_holds_of_rules_is_counted_without_the_summary() {
    let sample = Sample::new().call(Read, "AGENTS.md").output("No tabs.");
    let sample = sample.summary(&lines(60)).user("Go.");
    let mut transcript = sample.transcript().clone();
    transcript.context.drain(..2);
    let options = Options {
        kind: ContextKind::Stored,
        counter: &Quarters,
        thinking_is_bound: |_| false,
        counted: &[],
    };
    let compaction = plan_edits(&transcript, sample.source(), &recipe(""), &options);
    assert_eq!(compaction.pinned, Tokens(2));
}

#[test]
fn the_command_that_printed_a_rule_file_stays_so_that_a_second_run_knows_the_rules() {
    let command =
        format!("cd /home/dev/project && {} cat AGENTS.md", "ls -la src tests && ".repeat(9));
    let rules = format!("Never push.\n{}", lines(20));
    let sample = Sample::new().user("Go.").call(Shell, &command).output(&rules).reply("Done.");
    let arguments = "[[stages.passes]]\npass = 'arguments'\nroles = ['command']\nmin_bytes = 100\n\
                     head = 1\nwidth = 40\n[[stages.passes]]\npass = 'results'\n";
    let recipe = Recipe::parse(&format!("name = 'x'\nabout = ''\n{arguments}")).expect("a recipe");
    assert_eq!(describe(&run(&sample, &recipe).edits()), Vec::<String>::new());
}

#[test]
fn a_call_has_its_own_tokens_if_no_field_of_it_is_edited() {
    let fields = [(FieldRole::Content, "some text of a file")];
    let sample = Sample::new().call_with(Write, "/p/a.rs", &fields);
    let view = View::new(sample.transcript(), sample.source(), &Quarters);
    let Some(Block::Call(call)) = block_at(&view, At::Block { item: 0, block: 0 }) else {
        panic!("it is a call");
    };
    assert_eq!(tokens_with(&view, call, &BTreeMap::new()), view.tokens(0, 0));
    let shorter = BTreeMap::from([(0, "[1 line]".to_owned())]);
    // The text of the field has 19 bytes, and its replacement has eight.
    let tokens = (view.tokens(0, 0), tokens_with(&view, call, &shorter));
    assert_eq!(tokens, (Tokens(15), Tokens(13)));
}
