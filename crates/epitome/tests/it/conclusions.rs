//! Short texts of the model, before and after a compaction: for the tests of invariant 15.

use std::collections::HashSet;

use epitome::live::{Context, MessagePart, Setup};
use epitome_model::{Block, Counter, Entry, Role, Source, Tokens, Transcript};
use epitome_passes::{Recipe, Target, built_in};
use epitome_tokens::Estimate;

/// The maximum number of tokens of a short text.
const SHORT: Tokens = Tokens(80);

/// The short texts of the model in these entries, in order, each with its tokens; of equal texts
/// the last.
pub fn short_texts<'t>(
    entries: impl Iterator<Item = (usize, &'t Entry)>,
    source: &dyn Source,
    counter: &dyn Counter,
) -> Vec<(String, Tokens)> {
    // A log has an entry again if it stays in the context after a digest: that is no newer text.
    let of_model = entries.filter(|(_, entry)| entry.role == Role::Assistant && !entry.repeated);
    let texts = of_model.flat_map(|(_, entry)| &entry.blocks).filter_map(|block| match block {
        Block::Text(text) => Some(text.read(source).into_owned()),
        _ => None,
    });
    let weighed = texts.map(|text| (text.trim().to_owned(), counter.count(&text)));
    let short: Vec<(String, Tokens)> =
        weighed.filter(|(text, tokens)| !text.is_empty() && *tokens <= SHORT).collect();
    let mut seen = HashSet::new();
    let last = short.into_iter().rev().filter(|(text, _)| seen.insert(text.clone()));
    let mut last: Vec<_> = last.collect();
    last.reverse();
    last
}

/// All texts, digests and summaries that a context sends.
pub fn sent(transcript: &Transcript, source: &dyn Source) -> String {
    let texts = transcript.context().flat_map(|(_, entry)| &entry.blocks);
    let texts = texts.filter_map(|block| match block {
        Block::Text(text) | Block::Summary(text) => Some(text.read(source).into_owned()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The texts in `said` that `sent` lacks. With a budget, only the newest texts must be sent, up to
/// a tenth of the budget.
pub fn lost(said: &[(String, Tokens)], sent: &str, budget: Option<Tokens>) -> Vec<String> {
    let mut newest = Tokens(0);
    let should_be = said.iter().rev().take_while(|(_, tokens)| {
        newest += *tokens;
        budget.is_none_or(|budget| newest.0 <= budget.0 / 10)
    });
    should_be.filter(|(text, _)| !sent.contains(text)).map(|(text, _)| text.clone()).collect()
}

/// Conclusions of a model in several languages.
const TEXTS: [&str; 5] = [
    "Die Sperre geht in Runde {} verloren, sobald beide Seiten warten.",
    "第{}轮的问题在于两个线程互相等待。",
    "En la ronda {} el archivo está vacío porque nadie lo cierra.",
    "В раунде {} сначала исправлю чтение, потом запись.",
    "ラウンド{}の原因は古い設定でした。",
];

/// A recipe with a digest whose target is small.
fn recipe(name: &str) -> Recipe {
    let mut recipe = built_in(name).expect("a built-in recipe");
    recipe.trigger.live = Default::default();
    recipe.live.tool.min_tokens = 0;
    recipe.target.live = Some(Target::from_tokens(Tokens(6_000)));
    recipe
}

#[test]
fn what_the_model_concluded_survives_five_digests_in_a_row() {
    for name in ["epitome", "digest"] {
        let setup = Setup::new(recipe(name)).with_counter(Estimate::new());
        let mut context = Context::in_memory(setup);
        let mut all = Vec::new();
        context.user("Find it.").expect("memory is written");
        for round in 0..5 {
            for (n, text) in TEXTS.iter().enumerate() {
                let id = format!("c{round}-{n}");
                let text = text.replace("{}", &round.to_string());
                let path = format!(r#"{{"path":"src/mod_{round}/file_{n}.rs"}}"#);
                let parts = [MessagePart::text(&*text), MessagePart::call(&*id, "Read", path)];
                context.assistant(&parts).expect("memory is written");
                let lines: String = (0..150)
                    .map(|k| format!("let value_{round}_{n}_{k} = parse(src/len_{k}.rs);\n"))
                    .collect();
                context.tool(&[MessagePart::output(&*id, lines)]).expect("memory is written");
                all.push(text);
            }
            for again in [false, true] {
                let before = context.log().len();
                let target = Some(Tokens(6_000));
                let outcome = context.compact_to(None, target).expect("memory is written");
                assert_eq!(again, context.log().len() == before, "{name}: {outcome:?}");
                let view = context.unchanged_view();
                let sent = sent(view.transcript(), view.source());
                let lost: Vec<&String> = all.iter().filter(|text| !sent.contains(*text)).collect();
                assert_eq!(lost, Vec::<&String>::new(), "{name}, round {round}: {sent}");
            }
        }
    }
}

/// Three results of many lines, each about something else.
fn of_three_topics() -> Context {
    let recipe = built_in("digest").expect("a built-in recipe");
    let mut context = Context::in_memory(Setup::new(recipe));
    context.user("Go on.").expect("memory is written");
    for (n, topic) in ["Größenprüfung", "缓存失效", "retry of uploads"].iter().enumerate() {
        let lines: String = (0..200)
            .map(|k| format!("src/file_{n}_{k}.rs: the {topic} of value_{n}_{k}\n"))
            .collect();
        let id = format!("c{n}");
        context.assistant(&[MessagePart::call(&*id, "Bash", "{}")]).expect("memory is written");
        context.tool(&[MessagePart::output(&*id, lines)]).expect("memory is written");
    }
    context.assistant(&[MessagePart::text("All three are read.")]).expect("memory is written");
    context
}

#[test]
fn a_focus_is_what_the_digest_is_about_that_was_asked_for_with_it() {
    let topics = |focus: Option<&str>| {
        let mut context = of_three_topics();
        context.compact_to(focus, Some(Tokens(2_000))).expect("memory is written");
        let view = context.unchanged_view();
        let sent = sent(view.transcript(), view.source());
        ["Größenprüfung", "缓存失效", "retry"].map(|word| sent.matches(word).count())
    };
    for (at, focus) in ["größenprüfung", "关于缓存失效的问题", "the Retry"].iter().enumerate()
    {
        let with = topics(Some(focus));
        let all: usize = with.iter().sum();
        assert!(with[at] * 10 > all * 8, "{focus}: {with:?} instead of {:?}", topics(None));
    }
}
