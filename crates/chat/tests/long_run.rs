//! A long session in a small window: 500 turns, more than 2 million tokens of results, and never
//! more than 50,000 in a request. What the user asked for stays, and facts of the third turn are
//! answered from what `recall` returns. A development build, which takes a minute for every
//! hundred turns, does a tenth of it: `cargo test --release -p epitome-chat --test long_run`.

use epitome_api::named;
use epitome_chat::machine::{Action, Event, Input};
use epitome_chat::permissions::Access;
use epitome_chat::{Limits, Machine, Permissions};
use epitome_engine::{Context, Setup};
use epitome_llm::Response;
use epitome_model::Tokens;
use epitome_passes::{PerKind, Target, built_in};
use epitome_tokens::Estimate;
use serde_json::{Value, json};

const WINDOW: u64 = 50_000;
const TURNS: usize = if cfg!(debug_assertions) { 50 } else { 500 };
/// Tokens of results that come of them.
const PRODUCED: u64 = 4_200 * TURNS as u64;
const RULES: [(usize, &str); 3] = [
    (0, "Always write the tests first, whatever I ask."),
    (7, "From now on never touch the folder vendor/legacy."),
    (20, "Use tabs in Makefiles, and nothing else, until I say otherwise."),
];
const FACT: &str = "release token tk-93571-azure for shard 17";

struct Run {
    machine: Machine,
    actions: Vec<Action>,
    largest: Tokens,
    produced: u64,
    compactions: u64,
}

impl Run {
    fn new() -> Run {
        let mut recipe = built_in("digest").expect("a built-in recipe");
        recipe.target = PerKind::same(Some(Target::of_tokens(Tokens(20_000))));
        let setup = Setup::new(recipe).with_window(Tokens(WINDOW)).with_counter(Estimate::new());
        let permissions = Permissions::new("/p".into());
        let context = Context::in_memory(setup);
        let machine = Machine::new(context, permissions, Limits::default()).expect("a machine");
        Run { machine, actions: Vec::new(), largest: Tokens(0), produced: 0, compactions: 0 }
    }

    fn input(&mut self, input: Input) {
        for action in self.machine.input(input).expect("memory takes all") {
            match action {
                Action::Show(Event::Context { event }) => {
                    let done = matches!(event, epitome_passes::Event::Finished { .. });
                    self.compactions += u64::from(done);
                }
                Action::Show(Event::Done { ended, reason, .. }) => {
                    assert_eq!(ended, epitome_chat::Ended::Answered, "{reason:?}");
                }
                Action::Show(_) => {}
                Action::Send(_)
                | Action::Ask(..)
                | Action::Check(_)
                | Action::Permit(..)
                | Action::Question(..)
                | Action::Begin(_)
                | Action::Task(..)
                | Action::Run(..)
                | Action::Change(_)
                | Action::Stop => self.actions.push(action),
            }
        }
        let usage = self.machine.context().usage();
        if self.actions.iter().any(|action| matches!(action, Action::Send(_))) {
            self.largest = self.largest.max(usage.tokens);
            assert_eq!(self.machine.context().open_calls(), Vec::new());
        }
    }

    fn answers(&mut self, content: Value) {
        let Some(Action::Send(request)) = self.actions.pop() else { panic!("nothing is sent") };
        let response = response(&content);
        self.input(Input::Response(request, Box::new(response), None));
    }

    /// A turn with two parallel calls, whose results have as many lines.
    fn turn(&mut self, n: usize) {
        let rule = RULES.iter().find(|(turn, _)| *turn == n);
        let words = rule.map_or_else(|| format!("Step {n}: look at module {n}."), |it| it.1.into());
        self.input(Input::User(words));
        let call = |part: usize| {
            let path = format!("src/module_{n}/part_{part}.rs");
            let (id, input) = (format!("c{n}_{part}"), json!({"path": path}));
            json!({"type": "tool_use", "id": id, "name": "read", "input": input})
        };
        self.answers(json!([call(0), call(1)]));
        for part in 0..2 {
            let Some(at) = self.actions.iter().position(|it| matches!(it, Action::Check(_))) else {
                panic!("nothing is checked")
            };
            let Action::Check(called) = self.actions.remove(at) else { panic!("no check") };
            self.input(Input::Checked(called.id, Ok(Access::Read("/p/a".into()))));
            let Some(Action::Run(called, _)) = self.actions.pop() else { panic!("nothing runs") };
            let text = result(n, part);
            self.produced += text.len() as u64 / 4;
            self.input(Input::Result(called.id, Ok(text)));
        }
        let said = format!("Module {n} computes what it should.");
        self.answers(json!([{"type": "text", "text": said}]));
    }

    fn body(&self) -> String {
        let made = self.machine.context().as_it_is().body("anthropic").expect("an API");
        made.body
    }
}

fn response(content: &Value) -> Response {
    let body = json!({"content": content}).to_string();
    named("anthropic").expect("an API").response(body.as_bytes()).expect("a response")
}

/// The text of a file of which no two lines are alike.
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
    let mut run = Run::new();
    (0..TURNS).for_each(|n| run.turn(n));
    assert!(run.produced > PRODUCED, "{} tokens of results", run.produced);
    assert!(run.largest <= Tokens(WINDOW), "a request of {} tokens", run.largest);
    assert!(run.compactions > 5, "{} compactions", run.compactions);

    let body = run.body();
    for (turn, rule) in RULES {
        assert!(body.contains(rule), "the rule of turn {turn} is gone");
    }
    let api = named("anthropic").expect("an API");
    let bytes = body.clone().into_bytes();
    let read = (api.format.read)(&bytes, &mut ());
    assert_eq!(api.format.invariants.check(&read, &bytes), Vec::new());

    // Two calls a turn, counted from 1: the fact is in the eighth.
    assert!(!body.contains(FACT) || body.contains("#8"), "the digest names the call");
    run.input(Input::User("What was the release token in module 3?".into()));
    let search = json!({"ref": "#8", "search": "release token"});
    run.answers(json!([{"type": "tool_use", "id": "r", "name": "recall", "input": search}]));
    assert!(run.body().contains(FACT), "recall returns it");
    run.answers(json!([{"type": "text", "text": "tk-93571-azure"}]));
    println!(
        "{} tokens of results, largest request {}, {} compactions",
        run.produced, run.largest, run.compactions
    );
}
