//! The loop of the agent: tables of cases, and arbitrary orders of inputs.

use epitome_api::find_api;
use epitome_engine::Setup;
use epitome_llm::Response;
use epitome_model::{Block, Tokens, Transcript};
use epitome_passes::built_in;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[path = "machine_tests/background.rs"]
mod background;
#[path = "machine_tests/orders.rs"]
mod orders;
#[path = "machine_tests/tasks.rs"]
mod tasks;

/// A machine, and the actions that it has returned and that are not carried out yet.
struct Play {
    machine: Machine,
    actions: Vec<Action>,
    shown: Vec<Event>,
    /// Whether requests are checked against the invariants of services, which is slow.
    is_checked: bool,
}

impl Play {
    fn new(recipe: &str, window: u64) -> Play {
        Play::from_setup(Setup::new(built_in(recipe).unwrap()).with_window(Tokens(window)))
    }

    fn from_setup(setup: Setup) -> Play {
        let permissions = Permissions::new("/p".into());
        let context = Context::in_memory(setup);
        let machine = Machine::new(context, permissions, Limits::default()).unwrap();
        Play { machine, actions: Vec::new(), shown: Vec::new(), is_checked: true }
    }

    fn input(&mut self, input: Input) {
        for action in self.machine.input(input).unwrap() {
            match action {
                Action::Show(event) => self.shown.push(event),
                // A stop ends all open actions.
                Action::Stop => self.actions.clear(),
                Action::Change(_) => {}
                Action::Send(_)
                | Action::Ask(..)
                | Action::Prepare(..)
                | Action::Check(_)
                | Action::Permit(..)
                | Action::Question(..)
                | Action::Begin(_)
                | Action::Task(..)
                | Action::Run(..) => self.actions.push(action),
            }
        }
        if self.is_checked {
            self.check();
        }
    }

    /// Checks that services accept every request that is about to be sent.
    fn check(&self) {
        for action in &self.actions {
            if let Action::Task(call, action) = action
                && let (Action::Send(_), Some(context)) =
                    (&**action, self.machine.task_context(call))
            {
                accepted(context);
            }
        }
        let wants_answer = self.actions.iter().any(|it| matches!(it, Action::Send(_)));
        if !wants_answer && !self.machine.is_idle() {
            return;
        }
        accepted(self.machine.context());
    }

    /// Removes and returns the newest action that `is` accepts.
    fn take(&mut self, is: impl Fn(&Action) -> bool) -> Option<Action> {
        let at = self.actions.iter().rposition(is)?;
        Some(self.actions.remove(at))
    }

    fn request(&mut self) -> Option<u64> {
        match self.take(|it| matches!(it, Action::Send(_)))? {
            Action::Send(request) => Some(request),
            _ => None,
        }
    }

    fn sent(&self) -> u64 {
        match self.actions.last() {
            Some(Action::Send(request)) => *request,
            _ => panic!("nothing is sent"),
        }
    }

    /// Answers the current request.
    fn answers(&mut self, response: Response) {
        self.summarise();
        self.work();
        let request = self.sent();
        self.actions.pop();
        self.input(Input::Response(request, Box::new(response), Some(MicroDollars(1_000))));
    }

    /// Answers the questions for summaries with texts that contain no facts.
    fn summarise(&mut self) {
        while let Some(Action::Ask(request, ask)) = self.take(|it| matches!(it, Action::Ask(..))) {
            let headings = ask.prompt.lines().filter(|line| line.starts_with("## "));
            let heading = |line: &str| line.split(" (").next().unwrap_or_default().to_owned();
            let text: String =
                headings.map(|line| heading(line) + "\nThe work goes on.\n").collect();
            let stopped = epitome_model::StopReason::End;
            self.input(Input::Summary(request, Ok(Reply { text, stopped, used: None }), None));
        }
    }

    /// Completes the background preparations.
    fn work(&mut self) {
        while let Some(Action::Prepare(n, prepared)) =
            self.take(|it| matches!(it, Action::Prepare(..)))
        {
            self.input(prepared_by(n, prepared));
        }
    }

    fn user(&mut self, text: &str) {
        self.input(Input::User(text.to_owned()));
    }

    /// The blocks of the model's context, each in a short form.
    fn texts(&self) -> Vec<String> {
        let outgoing = self.machine.context().unchanged_view();
        let (transcript, source) = (outgoing.transcript(), outgoing.source());
        let text = |block: &Block| match block {
            Block::Text(text) => text.read(source).into_owned(),
            Block::Output(output) => format!("{}: {}", output.call, output.text(source)),
            Block::Call(call) => format!("{}?", call.id),
            Block::Summary(_) => "summary".to_owned(),
            _ => "other".to_owned(),
        };
        let transcript: &Transcript = transcript;
        transcript.context().flat_map(|(_, entry)| entry.blocks.iter().map(text)).collect()
    }

    fn ended(&self) -> Option<(TurnEnd, String)> {
        self.shown.iter().rev().find_map(|event| match event {
            Event::Done { ended, reason, .. } => Some((*ended, reason.clone().unwrap_or_default())),
            _ => None,
        })
    }
}

/// Checks that services accept a context.
fn accepted(context: &Context) {
    assert_eq!(context.open_calls(), Vec::new());
    let outgoing = context.unchanged_view();
    if outgoing.transcript().context.is_empty() {
        return;
    }
    for api in ["anthropic", "openai-chat", "openai-responses", "gemini-api"] {
        let body = outgoing.body(api).unwrap().body;
        let format = find_api(api).unwrap().format;
        let body = body.into_bytes();
        let read = (format.read)(&body, &mut ());
        let violations = format.invariants.check(&read, &body);
        let body = String::from_utf8_lossy(&body);
        assert!(violations.is_empty(), "{api}: {violations:?}\n{body}");
    }
}

/// The input that reports a finished preparation.
fn prepared_by(n: u64, mut prepared: Box<Preparation>) -> Input {
    prepared.work();
    Input::Prepared(n, Some(prepared))
}

fn response(content: &Value, stop: &str) -> Response {
    let body = json!({"content": content, "stop_reason": stop});
    find_api("anthropic").unwrap().response(body.to_string().as_bytes()).unwrap()
}

fn says(text: &str) -> Response {
    response(&json!([{"type": "text", "text": text}]), "end_turn")
}

fn calls(calls: &[(&str, &str, Value)]) -> Response {
    let mut content = Vec::new();
    for (id, name, input) in calls {
        content.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
    }
    response(&content.into(), "tool_use")
}

fn read(id: &str) -> Input {
    Input::Checked(id.into(), Ok(Access::Read("/p/a".into())))
}

fn result(id: &str, text: &str) -> Input {
    Input::Result(id.into(), Ok(text.to_owned()))
}

#[test]
fn an_answer_ends_the_turn_and_what_was_typed_meanwhile_begins_the_next() {
    let mut play = Play::new("epitome", 200_000);
    play.user("one");
    play.user("two");
    assert_eq!(play.texts(), ["one"]);
    play.answers(says("first"));
    assert_eq!(play.texts(), ["one", "first", "two"]);
    play.answers(says("second"));
    assert_eq!(play.texts(), ["one", "first", "two", "second"]);
    assert!(play.machine.is_idle());
    assert_eq!(play.machine.cost().cost, MicroDollars(2_000));
}

#[test]
fn calls_of_one_answer_run_together_and_what_was_typed_comes_behind_their_results() {
    let mut play = Play::new("epitome", 200_000);
    play.user("go");
    play.answers(calls(&[("a", "read", json!({})), ("b", "shell", json!({}))]));
    play.input(read("a"));
    play.input(Input::Checked("b".into(), Ok(Access::Shell("ls".into()))));
    let wanted: Vec<&str> = play
        .actions
        .iter()
        .map(|action| match action {
            Action::Check(_) => "check",
            Action::Run(..) => "run",
            Action::Permit(..) => "permit",
            Action::Send(_)
            | Action::Ask(..)
            | Action::Prepare(..)
            | Action::Stop
            | Action::Change(_)
            | Action::Question(..)
            | Action::Begin(_)
            | Action::Task(..)
            | Action::Show(_) => "other",
        })
        .collect();
    assert_eq!(wanted, ["check", "check", "run", "permit"]);
    play.user("meanwhile");
    play.input(Input::Permission("b".into(), Answer::No));
    play.input(result("a", "text of a"));
    let denied = "b: Not permitted: the user does not allow to run ls.";
    assert_eq!(play.texts(), ["go", "a?", "b?", denied, "a: text of a", "meanwhile"]);
    play.answers(says("done"));
    assert_eq!(play.ended(), Some((TurnEnd::Answered, String::new())));
}

#[test]
fn an_interrupted_request_keeps_what_was_said_and_its_late_answer_is_ignored() {
    let mut play = Play::new("epitome", 200_000);
    play.user("go");
    let request = play.sent();
    play.input(Input::Text(request, "I will".to_owned()));
    play.input(Input::Cancel);
    assert_eq!(play.ended(), Some((TurnEnd::Interrupted, "interrupted".to_owned())));
    play.input(Input::Text(request, " do it".to_owned()));
    play.input(Input::Response(request, Box::new(says("I will do it")), None));
    assert_eq!(play.texts(), ["go", "I will"]);
    play.user("wait");
    play.answers(says("yes"));
    assert_eq!(play.texts(), ["go", "I will", "wait", "yes"]);
}

#[test]
fn interrupted_calls_are_closed_as_what_they_were() {
    let mut play = Play::new("epitome", 200_000);
    play.user("go");
    let all = ["a", "b", "c", "d"].map(|id| (id, "read", json!({})));
    play.answers(calls(&all));
    play.input(read("a"));
    play.input(result("a", "text"));
    play.input(read("b"));
    play.input(Input::Checked("c".into(), Ok(Access::Write("/p/a".into()))));
    play.input(Input::Cancel);
    let [b, c, d] = [("b", INTERRUPTED), ("c", NOT_RUN), ("d", NOT_RUN)]
        .map(|(id, text)| format!("{id}: {text}"));
    assert_eq!(play.texts()[5..], ["a: text".to_owned(), b, c, d]);
    // A result that comes too late is ignored.
    play.input(result("b", "late"));
    assert_eq!(play.texts().len(), 9);
}

#[test]
fn an_interrupted_call_keeps_what_it_has_printed() {
    let mut play = Play::new("epitome", 200_000);
    play.user("go");
    play.answers(calls(&[("a", "read", json!({}))]));
    play.input(read("a"));
    let lines: String = (1..=50).map(|n| format!("line {n}\n")).collect();
    play.input(Input::Progress("a".into(), 2, lines.trim_end().to_owned()));
    // Progress of a call that is over is not shown.
    play.input(Input::Progress("b".into(), 2, "x".to_owned()));
    let shown = play.shown.iter().filter_map(|event| match event {
        Event::Progress { id, seconds, text } => Some((&**id, *seconds, text.lines().next())),
        _ => None,
    });
    assert_eq!(shown.collect::<Vec<_>>(), [("a", 2, Some("line 11"))]);
    play.input(Input::Cancel);
    let result = play.texts().pop().unwrap();
    assert_eq!(result, format!("a: {lines}[{INTERRUPTED}]"));
}

#[test]
fn a_compaction_that_is_asked_for_during_the_last_answer_is_made_after_it() {
    let mut play = Play::new("epitome", 200_000);
    play.user("go");
    play.input(Input::Compact(None));
    play.answers(says("done"));
    assert!(play.machine.is_idle());
    let done = play.shown.iter().position(|event| matches!(event, Event::Done { .. }));
    let notice = play.shown.iter().position(|event| matches!(event, Event::Notice { .. }));
    assert!(done.is_some() && done < notice, "{:?}", play.shown);
}

#[test]
fn an_answer_for_always_or_never_answers_all_that_wait() {
    for (answer, allowed, run) in [
        (Answer::Always, Some(true), &["a", "b"][..]),
        (Answer::Never, Some(false), &[]),
        (Answer::Once, None, &["a"]),
    ] {
        let mut play = Play::new("epitome", 200_000);
        play.user("go");
        play.answers(calls(&["a", "b", "c"].map(|id| (id, "write", json!({})))));
        for (id, path) in [("a", "/p/a"), ("b", "/p/b"), ("c", "/elsewhere")] {
            play.input(Input::Checked(id.into(), Ok(Access::Write(path.into()))));
        }
        play.input(Input::Permission("a".into(), answer));
        let running = play.actions.iter().filter_map(|action| match action {
            Action::Run(called, _) => Some(&*called.id),
            _ => None,
        });
        assert_eq!(running.collect::<Vec<_>>(), run, "{answer:?}");
        let of_b = play.shown.iter().find_map(|event| match event {
            Event::Permitted { id, allowed } if id == "b" => Some(*allowed),
            _ => None,
        });
        assert_eq!(of_b, allowed, "{answer:?}");
    }
}

#[test]
fn answers_that_were_cut_off_go_on_three_times() {
    let mut play = Play::new("epitome", 200_000);
    play.user("go");
    for n in 0..4 {
        assert_eq!(play.ended(), None, "{n}");
        play.answers(response(&json!([{"type": "text", "text": format!("{n} ")}]), "max_tokens"));
    }
    let reason = "the answer was cut off at the limit of its length several times";
    assert_eq!(play.ended(), Some((TurnEnd::Failed, reason.to_owned())));
    assert_eq!(play.texts().iter().filter(|text| *text == GO_ON).count(), 3);
    let Some(Event::Done { answer, .. }) = play.shown.last() else { panic!("not done") };
    assert_eq!(answer, "0 1 2 3 ");
}

#[test]
fn an_interrupted_answer_that_was_cut_off_before_is_reported_whole() {
    let mut play = Play::new("epitome", 200_000);
    play.user("go");
    play.answers(response(&json!([{"type": "text", "text": "It is "}]), "max_tokens"));
    let request = play.sent();
    play.input(Input::Text(request, "not so".to_owned()));
    play.input(Input::Cancel);
    let Some(Event::Done { ended, answer, .. }) = play.shown.last() else { panic!("not done") };
    assert_eq!((*ended, &**answer), (TurnEnd::Interrupted, "It is not so"));
    assert_eq!(play.texts(), ["go", "It is ", GO_ON, "not so"]);
    // The next answer does not continue this one.
    play.user("on");
    play.answers(says("Yes."));
    let Some(Event::Done { answer, .. }) = play.shown.last() else { panic!("not done") };
    assert_eq!(answer, "Yes.");
}

#[test]
fn what_is_no_answer_ends_the_turn_with_a_reason() {
    for (failed, expect) in [
        (Ok(response(&json!([]), "end_turn")), "the model returned an empty answer"),
        (Ok(response(&json!([]), "refusal")), "the model declined to answer"),
        (Err(Failure::Unreachable("no route".into())), "the service cannot be reached: no route"),
    ] {
        let mut play = Play::new("epitome", 200_000);
        play.user("go");
        match failed {
            Ok(response) => play.answers(response),
            Err(failure) => {
                let request = play.sent();
                play.input(Input::Failed(request, failure));
            }
        }
        assert_eq!(play.ended(), Some((TurnEnd::Failed, expect.to_owned())));
        assert!(play.machine.is_idle());
    }
}

#[test]
fn no_request_is_sent_once_the_budget_is_spent() {
    let mut play = Play::new("epitome", 200_000);
    play.machine.set_budget(Some(MicroDollars(1_500)));
    play.user("one");
    play.answers(says("first"));
    play.user("two");
    play.answers(says("second"));
    play.user("three");
    let ended = play.ended().unwrap();
    assert_eq!(ended.0, TurnEnd::Budget, "{ended:?}");
    assert!(play.actions.is_empty() && play.machine.is_idle());
    play.machine.set_budget(None);
    play.user("four");
    assert_eq!(play.texts(), ["one", "first", "two", "second", "three", "four"]);
}

/// A turn with a result of many lines.
fn long_turn(play: &mut Play, n: usize) {
    play.user(&format!("turn {n}"));
    let id = format!("c{n}");
    play.answers(calls(&[(&id, "read", json!({"path": format!("f{n}.rs")}))]));
    play.input(read(&id));
    let line = |k: usize| format!("let value_{n}_{k} = compute({k});\n");
    play.input(result(&id, &(0..400).map(line).collect::<String>()));
    play.answers(says("seen"));
}

#[test]
fn a_refused_request_is_sent_again_smaller_and_only_once() {
    let mut play = Play::new("epitome", 200_000);
    (0..6).for_each(|n| long_turn(&mut play, n));
    play.user("more");
    let before = play.machine.context().usage().tokens;
    let too_long = || Failure::TooLong {
        limit: None,
        message: "prompt is too long: 30000 tokens > 20000 maximum".into(),
        used: None,
    };
    let request = play.sent();
    play.input(Input::Failed(request, too_long()));
    assert!(play.machine.context().usage().tokens < before);
    let again = play.sent();
    assert_ne!(again, request);
    play.input(Input::Failed(again, too_long()));
    let (ended, reason) = play.ended().unwrap();
    assert_eq!(ended, TurnEnd::Failed);
    assert!(reason.starts_with("the context cannot be made to fit: "), "{reason}");
}

#[test]
fn a_compaction_that_is_asked_for_is_reported_and_can_be_taken_back() {
    let mut play = Play::new("epitome", 200_000);
    (0..12).for_each(|n| long_turn(&mut play, n));
    let before = play.machine.context().usage().tokens;
    play.input(Input::Compact(None));
    if let Some(Action::Ask(request, _)) = play.actions.pop() {
        play.input(Input::Summary(request, Err(NoReply::NoModel), None));
    }
    assert!(play.machine.is_idle());
    let after = play.machine.context().usage().tokens;
    assert!(after < before, "{before} {after}");
    assert!(play.shown.iter().any(|event| matches!(event, Event::Notice { .. })));
    play.input(Input::Undo);
    assert_eq!(play.machine.context().usage().tokens, before);
    play.input(Input::Undo);
    let last = Event::Notice { text: "there is no compaction to take back".into() };
    assert!(play.shown.contains(&last));
}

#[test]
fn what_was_said_is_counted_the_same_after_a_session_is_resumed() {
    struct Nowhere;
    impl epitome_engine::Journal for Nowhere {
        fn append(&mut self, _: &[u8]) -> Result<()> {
            Ok(())
        }

        fn flush(&self) -> Result<()> {
            Ok(())
        }
    }
    let mut play = Play::new("s06", 200_000);
    (0..6).for_each(|n| long_turn(&mut play, n));
    let context = play.machine.context();
    let setup = Setup::new(built_in("s06").unwrap()).with_window(Tokens(200_000));
    let resumed = Context::resume(context.log().to_vec(), Box::new(Nowhere), setup).unwrap();
    assert!(context.report().originals > context.report().sent);
    assert_eq!(resumed.report(), context.report());
}

#[test]
fn the_tool_compact_gets_its_result_behind_all_others_and_recall_gives_things_back() {
    let mut play = Play::new("digest", 200_000);
    (0..12).for_each(|n| long_turn(&mut play, n));
    play.user("and now something else");
    play.answers(calls(&[
        ("x", "compact", json!({"focus": "else"})),
        ("y", "read", json!({"path": "z"})),
    ]));
    play.user("typed meanwhile");
    play.input(read("y"));
    play.input(result("y", "short"));
    let texts = play.texts();
    let end = &texts[texts.len() - 5..];
    assert_eq!((&*end[0], &*end[1], &*end[2]), ("x?", "y?", "y: short"));
    assert!(end[3].starts_with("x: Compacted: "), "{}", end[3]);
    assert_eq!(end[4], "typed meanwhile");
    for (arguments, expect) in [
        (
            json!({"ref": "#3", "offset": 2, "limit": 1}),
            "let value_2_1 = compute(1);\n[lines 2-2 of 400]",
        ),
        (json!({"ref": "#3", "offset": 401}), "the text has 400 lines"),
        (json!({"ref": "3", "search": "value_2_399 "}), "400: let value_2_399 = compute(399);"),
        (json!({"ref": "#2–3", "search": "#"}), "1: #2:\n404: #3:"),
        (json!({"ref": "#3", "search": "nothing"}), "no line of 400 holds `nothing`"),
        (json!({"ref": "@6"}), "seen"),
        (json!({"search": "VALUE_2_399 "}), "#3 400: let value_2_399 = compute(399);"),
        (json!({"search": "not said"}), "nothing that was said holds `not said`"),
        (json!({"ref": "#99"}), "nothing was shortened under #99"),
        (
            json!({"ref": "what"}),
            "`what` is no reference: use one like k495d399, a call like #12, or a response of \
             yours like @7",
        ),
        (json!({}), "bad arguments: a `ref`, a `search`, or both are needed"),
    ] {
        let recalled = play.machine.recall(&arguments.to_string());
        assert_eq!(recalled.unwrap_or_else(|err| err), expect, "{arguments}");
    }
}

/// A text of the model is recalled by the number of its call, by the number of its response, and by
/// search; `/losses` lists what is not sent.
#[test]
fn what_the_model_said_is_recalled() {
    let mut play = Play::new("digest", 200_000);
    let cause = "Die Sperre wird zweimal genommen; daher der wacklige Test. ".repeat(60);
    play.user("go");
    let read_it = json!({"type": "tool_use", "id": "a", "name": "read", "input": {"path": "a.rs"}});
    let content = json!([{"type": "text", "text": "Zuerst a.rs."}, read_it]);
    play.answers(response(&content, "tool_use"));
    play.input(read("a"));
    play.input(result("a", "fn main() {}"));
    play.answers(says(&cause));
    (1..12).for_each(|n| long_turn(&mut play, n));
    play.input(Input::Compact(None));
    let long = cause.trim_end();
    for (arguments, expect) in [
        (json!({"ref": "#1"}), "[you said, @1:]\nZuerst a.rs.\n[result:]\nfn main() {}"),
        (json!({"ref": "#1", "search": "a.rs"}), "@1 1: Zuerst a.rs."),
        (json!({"ref": "@1"}), "Zuerst a.rs."),
        (json!({"ref": "@2"}), long),
        (json!({"ref": "@1-2"}), &format!("@1:\nZuerst a.rs.\n\n@2:\n{long}")),
        (json!({"search": "zuerst"}), "@1 1: Zuerst a.rs."),
        (json!({"ref": "@99"}), "nothing was shortened under @99"),
    ] {
        let recalled = play.machine.recall(&arguments.to_string());
        assert_eq!(recalled.unwrap_or_else(|err| err).trim_end(), expect, "{arguments}");
    }
    let lines = crate::notices::losses(play.machine.context());
    let is_listed = |line: &String| line.starts_with("  @2 Die Sperre wird zweimal genommen");
    assert!(lines.iter().any(is_listed), "{lines:#?}");
}

#[test]
fn a_question_is_answered_by_the_user_or_by_the_fact_that_there_is_none() {
    let asks = json!({"question": "Which?", "choices": ["one", "two"]});
    for (arguments, answer, expect) in [
        (asks.clone(), Ok("two"), "a: two"),
        (
            asks.clone(),
            Err(NoAnswer::Unattended),
            "a: No user is present. Decide yourself, and say what you assumed.",
        ),
        (
            asks.clone(),
            Err(NoAnswer::Declined),
            "a: The user does not answer this. Decide yourself, and say what you assumed.",
        ),
        (json!({"question": " "}), Ok("unused"), "a: the question is empty"),
        (
            json!({"question": "?", "choices": vec!["x"; 10]}),
            Ok("unused"),
            "a: there are more than 9 choices",
        ),
    ] {
        let mut play = Play::new("epitome", 200_000);
        play.user("go");
        play.answers(calls(&[("a", "ask", arguments)]));
        play.input(Input::Checked("a".into(), Ok(Access::Own)));
        let asked = play.take(|action| matches!(action, Action::Question(..)));
        if let Some(Action::Question(called, question)) = asked {
            assert_eq!((&*question.question, question.choices.len()), ("Which?", 2));
            // Only a question can be answered, and only once.
            play.input(Input::Told("b".into(), Ok("three".into())));
            play.input(Input::Told(called.id.clone(), answer.map(str::to_owned)));
            play.input(Input::Told(called.id, Ok("late".into())));
        }
        assert_eq!(play.texts(), ["go", "a?", expect]);
        play.answers(says("done"));
    }
    let mut play = Play::new("epitome", 200_000);
    play.user("go");
    play.answers(calls(&[("a", "ask", asks)]));
    play.input(Input::Checked("a".into(), Ok(Access::Own)));
    play.input(Input::Cancel);
    assert_eq!(play.texts()[2], format!("a: {NOT_RUN}"));
}

/// A context for a sub-agent.
fn task_context() -> Box<Context> {
    Box::new(Context::in_memory(Setup::new(built_in("epitome").unwrap())))
}

impl Play {
    fn within(&mut self, task: &str, input: Input) {
        self.input(Input::Task(task.into(), Box::new(input)));
    }
}

/// Whatever a recipe removes, and whatever a model writes into a summary: a loaded skill is in
/// every later request.
#[test]
fn a_loaded_skill_stays_through_every_compaction_of_every_recipe() {
    let rule =
        "Never release on a Friday; bump the version in three places: a.toml, b.toml, c.toml.";
    let padding = "The team likes tea, and so on.\n".repeat(20);
    let text = format!("Instructions of the skill release:\n\n- {rule}\n{padding}");
    for (recipe, _) in epitome_passes::BUILT_IN {
        let setup = Setup::new(built_in(recipe).unwrap()).with_window(Tokens(60_000));
        let mut play = Play::from_setup(setup.with_counter(epitome_tokens::Estimate::new()));
        play.is_checked = false;
        play.user("Prepare a release.");
        play.answers(calls(&[("s", "skill", json!({"name": "release"}))]));
        play.input(Input::Checked("s".into(), Ok(Access::Own)));
        play.input(result("s", &text));
        play.answers(says("I know how."));
        for round in 0..2 {
            (0..6).for_each(|n| long_turn(&mut play, round * 6 + n));
            play.input(Input::Compact(None));
            play.summarise();
            let body = play.machine.context().unchanged_view().body("anthropic").unwrap().body;
            assert!(body.contains(rule), "{recipe}, round {round}");
        }
        let report = play.machine.context().report();
        let outcome = play.machine.context().outcome();
        assert!(report.sent < report.originals, "{recipe}: nothing was compacted: {outcome:?}");
    }
}

#[test]
fn calls_that_were_open_when_the_program_was_killed_are_closed() {
    let setup = || Setup::new(built_in("epitome").unwrap());
    let mut context = Context::in_memory(setup());
    context.user("go").unwrap();
    let call = epitome_engine::MessagePart::call("a", "shell", "{}");
    context.assistant(&[call]).unwrap();
    let permissions = Permissions::new("/p".into());
    let machine = Machine::new(context, permissions, Limits::default()).unwrap();
    let mut play = Play { machine, actions: Vec::new(), shown: Vec::new(), is_checked: true };
    play.check();
    // Whether the call ran, or waited for permission, is not in the log.
    let expect = "a: There is no result: the program ended first. If the call ran, it may have had \
                  effects.";
    assert_eq!(play.texts()[2], expect);
    play.user("go on");
    play.answers(says("yes"));
}

#[test]
fn a_context_whose_open_calls_cannot_be_closed_replaces_nothing() {
    /// A disk that is full when the call is closed.
    struct FullDisk;
    impl epitome_engine::Journal for FullDisk {
        fn append(&mut self, lines: &[u8]) -> Result<()> {
            if String::from_utf8_lossy(lines).contains("the program ended first") {
                return Err(Error::new(ErrorKind::Disk, "no storage space"));
            }
            Ok(())
        }

        fn flush(&self) -> Result<()> {
            Ok(())
        }
    }
    let setup = Setup::new(built_in("epitome").unwrap());
    let mut context = Context::create(Box::new(FullDisk), setup).unwrap();
    context.user("go").unwrap();
    let call = epitome_engine::MessagePart::call("a", "shell", "{}");
    context.assistant(&[call]).unwrap();
    let mut play = Play::new("epitome", 200_000);
    let before = play.machine.context().log().to_vec();
    let replaced = play.machine.replace_context(context);
    assert_eq!(replaced.map_err(|err| err.kind()), Err(ErrorKind::Disk));
    assert_eq!(play.machine.context().log(), before);
}
