//! Compactions in the background.

use epitome_passes::{Event as Change, EventReason};

use super::*;

/// A machine with a recipe with background compactions, in a window of 30,000 tokens of which
/// 14,000 may be used. With `ion`, only a summary makes the context small.
fn play(recipe: &str) -> Play {
    let mut recipe = built_in(recipe).unwrap();
    recipe.live.background = true;
    if recipe.name == "ion" {
        recipe.stages.live.passes.clear();
        recipe.keep.messages = Some(4);
    }
    Play::from_setup(Setup::new(recipe).with_window(Tokens(30_000)))
}

impl Play {
    /// The model reads another file.
    fn reads(&mut self, id: &str) {
        let request = self.take(|it| matches!(it, Action::Send(_)));
        let Some(Action::Send(request)) = request else { panic!("nothing is sent") };
        let called = calls(&[(id, "read", json!({"path": format!("src/{id}.rs")}))]);
        self.input(Input::Response(request, Box::new(called), None));
        self.actions.retain(|it| !matches!(it, Action::Check(_)));
        self.input(read(id));
        self.actions.retain(|it| !matches!(it, Action::Run(..)));
        let line = |n: usize| format!("let value_{id}_{n} = computeAll(input, {n})?;\n");
        self.input(result(id, &(0..60).map(line).collect::<String>()));
    }

    /// Continues a turn until a compaction is to be prepared. The next request is then sent too.
    fn until_prepared(&mut self) -> (u64, Box<Preparation>) {
        self.user("Read all.");
        for n in 0..40 {
            if let Some(Action::Prepare(n, prepared)) =
                self.take(|it| matches!(it, Action::Prepare(..)))
            {
                assert!(matches!(&self.actions[..], [Action::Send(_)]), "{:?}", self.actions);
                return (n, prepared);
            }
            self.reads(&format!("a{n}"));
        }
        panic!("nothing is prepared")
    }

    /// Continues the turn until a compaction is due, so that the machine waits for it.
    fn until_due(&mut self) {
        for n in 0..40 {
            self.reads(&format!("b{n}"));
            if self.actions.is_empty() {
                return assert!(!self.machine.is_idle());
            }
        }
        panic!("nothing is due")
    }

    /// The reasons of the compactions so far.
    fn compacted(&self) -> Vec<EventReason> {
        let why = |event: &Event| match event {
            Event::Context { event: Change::Finished { why, .. } } => Some(*why),
            _ => None,
        };
        self.shown.iter().filter_map(why).collect()
    }

    fn is_sent(&self) -> bool {
        matches!(self.actions.last(), Some(Action::Send(_)))
    }
}

#[test]
fn it_is_swapped_in_where_the_next_turn_begins() {
    for recipe in ["epitome", "digest"] {
        let mut play = play(recipe);
        let (n, prepared) = play.until_prepared();
        play.input(prepared_by(n, prepared));
        play.reads("z");
        assert_eq!(play.compacted(), [], "{recipe}: the turn goes on");
        play.answers(says("That is all."));
        assert_eq!(play.compacted(), [], "{recipe}: the turn is over");
        play.user("Thank you.");
        assert_eq!(play.compacted(), [EventReason::Background], "{recipe}");
        let texts = play.texts();
        assert_eq!(texts[0], "summary", "{recipe}");
        assert_eq!(texts[texts.len() - 2..], ["That is all.", "Thank you."], "{recipe}");
        assert!(texts.contains(&"z?".to_owned()), "{recipe}: what was said since stays");
        assert!(play.is_sent(), "{recipe}");
    }
}

#[test]
fn a_request_whose_compaction_is_due_waits_for_a_model_and_computes_itself() {
    for (recipe, expect) in [("digest", EventReason::Trigger), ("ion", EventReason::Background)] {
        let mut play = play(recipe);
        let (n, prepared) = play.until_prepared();
        play.until_due();
        play.user("And more?");
        play.input(prepared_by(n, prepared));
        assert_eq!(play.is_sent(), recipe == "digest");
        play.summarise();
        play.work();
        assert_eq!(play.compacted(), [expect], "{recipe}");
        assert!(play.is_sent(), "{recipe}");
        assert_eq!(play.texts().last().unwrap(), "And more?", "{recipe}");
    }
}

#[test]
fn a_turn_waits_for_what_is_computed_and_not_for_a_model() {
    let mut play_computed = play("digest");
    let (n, prepared) = play_computed.until_prepared();
    play_computed.answers(says("That is all."));
    play_computed.user("Thank you.");
    assert!(play_computed.actions.is_empty() && !play_computed.machine.is_idle());
    play_computed.input(prepared_by(n, prepared));
    assert!(play_computed.is_sent());
    assert_eq!(play_computed.compacted(), [EventReason::Background]);

    let mut play = play("ion");
    let (n, prepared) = play.until_prepared();
    play.input(prepared_by(n, prepared));
    let is_asked = |play: &Play| play.actions.iter().any(|it| matches!(it, Action::Ask(..)));
    assert!(is_asked(&play), "{:?}", play.actions);
    let request = play.request().unwrap();
    play.input(Input::Response(request, Box::new(says("That is all.")), None));
    play.user("Thank you.");
    assert!(play.is_sent(), "a model may take its time");
    assert_eq!(play.compacted(), []);
    // The model writes the summary while it answers the next message.
    play.summarise();
    play.answers(says("You are welcome."));
    play.user("One more thing.");
    assert_eq!(play.compacted(), [EventReason::Background]);
    assert_eq!(play.machine.context().report().summaries.asks, 1);
}

#[test]
fn one_of_a_context_that_is_another_now_is_dropped_and_so_is_one_that_fails() {
    type Meanwhile = fn(&mut Play);
    let all: [(&str, Meanwhile, &[EventReason]); 3] = [
        ("interrupted", |play| play.input(Input::Cancel), &[]),
        (
            "compacted",
            |play| {
                play.answers(says("So."));
                play.input(Input::Compact(None));
            },
            &[EventReason::Manual],
        ),
        (
            "refused",
            |play| {
                let request = play.request().unwrap();
                let message = "prompt is too long".to_owned();
                let failure = Failure::TooLong { limit: None, message, used: None };
                play.input(Input::Failed(request, failure));
                play.answers(says("So."));
            },
            &[EventReason::Overflow],
        ),
    ];
    for (what, meanwhile, expect) in all {
        let mut play = play("digest");
        let (n, prepared) = play.until_prepared();
        meanwhile(&mut play);
        play.input(prepared_by(n, prepared));
        play.user("Go on.");
        assert!(play.is_sent(), "{what}");
        assert_eq!(play.compacted(), expect, "{what}");
    }
    let mut play = play("digest");
    let (n, _) = play.until_prepared();
    play.until_due();
    play.input(Input::Prepared(n, None));
    assert_eq!(play.compacted(), [EventReason::Trigger], "it is done where it is due");
    assert!(play.is_sent());
}

#[test]
fn without_money_no_summary_is_asked_for_in_the_background() {
    let mut play = play("ion");
    let (n, prepared) = play.until_prepared();
    play.machine.set_budget(Some(MicroDollars(1)));
    play.machine.cost.cost = MicroDollars(2);
    play.input(prepared_by(n, prepared));
    assert!(!play.actions.iter().any(|it| matches!(it, Action::Ask(..))), "{:?}", play.actions);
}
