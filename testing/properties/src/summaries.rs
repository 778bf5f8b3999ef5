//! A live context and the model that writes the context's summaries, both driven by any bytes.

use std::sync::Arc;

use epitome::live::{Context, MessagePart, Next, Setup};
use epitome_api::APIS;
use epitome_formats::{epitome::blocks_of, find_format};
use epitome_model::{Block, Counter, Tokens};
use epitome_passes::{Ask, NoReply, Recipe, Reply, StopReason, TokenUsage, Writer};
use epitome_tokens::Estimate;

const RECIPE: &str = r#"
    name = "told"
    about = "A summary of all but the last messages."
    keep = { messages = 2 }
    passes = []
    live.when = "asked"

    [live.summary]
    max_tokens = 300
    sections = ["Goal", "Next"]
"#;

/// Maximum number of questions for one compaction: about the parts of a conversation, about the
/// notes on the parts, and again in smaller windows.
const MOST: u64 = 250;

/// Reads any lines as a conversation and as answers of a model. The first character of a line says
/// what the line is. Of the conversation: `u` (the user), `a` (the agent), `c` (a call and its
/// result, longer with each digit), `k` (a requested compaction). Of the answers: `=`, `l`, `t`,
/// `r`, `s` (answers that end, are cut off, call a tool, are declined, stop for another reason),
/// `f`, `o` and `n` (a failure, a question that is too long, no model).
///
/// The first line is the window of the summarising model. Every compaction must end, and each of
/// its questions must fit the window. If no summary is made, the context must not change. If one is
/// made, the kept part of the context must not change.
///
/// # Panics
///
/// If that does not hold.
pub fn summary(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // If the first line is no number, the window has 9,000 tokens.
    let (first, talk) = text.split_once('\n').unwrap_or((&text, ""));
    let window = first.trim().parse::<u64>().unwrap_or(9_000).clamp(1, 200_000);
    let mut replies = Replies::parse(talk);
    let recipe = Recipe::parse(RECIPE).expect("a recipe");
    let writer = Writer { window: Tokens(window), counter: Arc::new(Estimate::new()) };
    let setup = Setup::new(recipe).with_counter(Estimate::new()).with_writer(writer);
    let mut context = Context::in_memory(setup);
    for (n, line) in talk.lines().take(60).enumerate() {
        let Some((kind, rest)) = kind(line) else { continue };
        let done = match kind {
            'u' => context.user(rest),
            'a' => context.assistant(&[MessagePart::text(rest)]),
            'c' => call(&mut context, n, rest),
            'k' => {
                compact(&mut context, rest, window, &mut replies);
                Ok(())
            }
            _ => Ok(()),
        };
        done.expect("memory is written");
    }
    compact(&mut context, "", window, &mut replies);
    check_log(&context);
}

fn kind(line: &str) -> Option<(char, &str)> {
    let kind = line.chars().next()?;
    Some((kind, &line[kind.len_utf8()..]))
}

fn call(context: &mut Context, n: usize, rest: &str) -> epitome::Result<()> {
    let id = n.to_string();
    let times = rest.bytes().filter(u8::is_ascii_digit).count().min(40);
    let text = format!("{rest} and more words\n").repeat(1 + times * 9);
    context.assistant(&[MessagePart::call(id.clone(), "Read", r#"{"path":"a.rs"}"#)])?;
    context.tool(&[MessagePart::output(id, text)])
}

/// Answers in the order of their lines; after the last, the first comes again. Without answers,
/// there is no model.
struct Replies {
    all: Vec<Result<Reply, NoReply>>,
    next: usize,
}

impl Replies {
    fn parse(talk: &str) -> Replies {
        let says = |text: &str, stopped| {
            let used = Some(TokenUsage { output: Tokens(1), ..TokenUsage::default() });
            Ok(Reply { text: text.replace('|', "\n"), stopped, used })
        };
        let all = talk.lines().filter_map(|line| {
            let (kind, rest) = kind(line)?;
            Some(match kind {
                '=' => says(rest, StopReason::End),
                'l' => says(rest, StopReason::Length),
                't' => says(rest, StopReason::Call),
                'r' => says(rest, StopReason::Refused),
                's' => says(rest, StopReason::Other("safety".into())),
                'f' => Err(NoReply::Failed(rest.into())),
                'o' => Err(NoReply::TooLong),
                'n' => Err(NoReply::NoModel),
                _ => return None,
            })
        });
        Replies { all: all.collect(), next: 0 }
    }

    fn next(&mut self) -> Result<Reply, NoReply> {
        if self.all.is_empty() {
            return Err(NoReply::NoModel);
        }
        self.next += 1;
        self.all[(self.next - 1) % self.all.len()].clone()
    }
}

fn compact(context: &mut Context, focus: &str, window: u64, replies: &mut Replies) {
    let (before, tokens) = (describe(context), context.usage().tokens);
    let spent = context.report().summaries;
    let compactions = context.report().compactions;
    context.ask_for_compaction(Some(focus), Some(Tokens(0)));
    let (mut asked, mut billed) = (0, 0);
    let mut kept = 0;
    while let Next::Ask(question) = context.step().expect("memory is written") {
        assert!(asked <= MOST, "it ends");
        check_fits(&question.ask, window);
        kept = question.kept.len();
        let reply = replies.next();
        asked += u64::from(!matches!(reply, Err(NoReply::NoModel)));
        billed += u64::from(reply.is_ok());
        context.answer(reply).expect("memory is written");
    }
    let after = context.report();
    assert_eq!(after.summaries.asks, spent.asks + asked, "every question is accounted");
    assert_eq!(after.summaries.used.output, spent.used.output + Tokens(billed), "and its price");
    let now = describe(context);
    if after.compactions == compactions {
        assert_eq!(now, before, "without a summary nothing has changed");
        return;
    }
    assert_eq!(after.compactions, compactions + 1);
    assert!(context.usage().tokens < tokens, "it is smaller");
    assert_eq!(now[now.len() - kept..], before[before.len() - kept..], "what is kept is as it was");
    assert_eq!(now.len(), kept + 1, "one summary stands for the rest");
    check_summary(&now[0]);
}

fn check_fits(ask: &Ask, window: u64) {
    let counter = Estimate::new();
    let tokens = counter.count(&ask.system) + counter.count(&ask.prompt) + Tokens(ask.max_tokens);
    assert!(tokens <= Tokens(window), "{tokens} of {window}");
}

/// Checks that no text of the session can pass for a user message in a summary, and that the
/// summary has the sections of the recipe.
fn check_summary(text: &str) {
    let (ours, told) = text.split_once("# Told by a model").expect("it has two halves");
    let (open, close) = ("<user-message n=", "</user-message>");
    assert_eq!(ours.matches(open).count(), ours.matches(close).count(), "{text}");
    assert!(!told.contains(open) && !told.contains(close) && !told.contains("<user>"), "{text}");
    for heading in ["## Goal", "## Next"] {
        assert!(told.contains(heading), "{text}");
    }
}

/// A description of each entry of the context that is sent.
fn describe(context: &Context) -> Vec<String> {
    let view = context.unchanged_view();
    let entries = view.transcript().context();
    let words = entries.map(|(_, entry)| match entry.blocks.as_slice() {
        [Block::Summary(text)] => text.read(view.source()).into_owned(),
        _ => format!("{:?} {:?}", entry.role, blocks_of(entry, view.source())),
    });
    words.collect()
}

/// Checks that the log, read again, is the context that is sent, and that a request of every API to
/// which it is written keeps the API's invariants.
fn check_log(context: &Context) {
    let log = context.log().to_vec();
    let read = (find_format("epitome").expect("a format").read)(&log, &mut ());
    assert_eq!(read, *context.unchanged_view().transcript(), "the log says what is sent");
    for wire in APIS {
        let made = context.unchanged_view().body(wire.name).expect("a wire");
        if made.messages > 0 {
            let body = made.body.into_bytes();
            let read = (wire.format.read)(&body, &mut ());
            assert_eq!(wire.format.invariants.check(&read, &body), [], "{} takes it", wire.name);
        }
    }
}
