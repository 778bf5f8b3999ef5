//! Sub-agents: machines inside of the machine that started them.

use super::*;

impl Play {
    /// The model calls tools; the first `begun` of them are calls of `task`, whose sub-agents
    /// start.
    fn begins(&mut self, all: &[(&str, &str, Value)], begun: usize) {
        self.user("go");
        self.answers(calls(all));
        for (id, ..) in &all[..begun] {
            self.input(Input::Checked((*id).into(), Ok(Access::Own)));
            self.input(Input::Begun((*id).into(), Ok(task_context())));
        }
    }

    /// Answers the newest request of the sub-agent that the call `task` started.
    fn task_answers(&mut self, task: &str, response: Response) {
        let is_sent = |action: &Action| match action {
            Action::Task(call, action) => &**call == task && matches!(**action, Action::Send(_)),
            _ => false,
        };
        let Some(Action::Task(_, action)) = self.take(is_sent) else { panic!("nothing is sent") };
        let Action::Send(request) = *action else { panic!("nothing is sent") };
        let response = Input::Response(request, Box::new(response), Some(MicroDollars(1_000)));
        self.within(task, response);
    }

    fn shown_of(&self, task: &str) -> Vec<&Event> {
        let all = self.shown.iter().filter_map(|event| match event {
            Event::Task { id, inner } if id == task => Some(&**inner),
            _ => None,
        });
        all.collect()
    }
}

fn task(prompt: &str) -> Value {
    json!({"description": "a look", "prompt": prompt})
}

#[test]
fn a_task_has_a_context_of_its_own_and_gives_back_its_last_answer() {
    let mut play = Play::new("epitome", 200_000);
    play.begins(&[("t", "task", task("Find it.")), ("u", "task", task("Find the other."))], 2);
    play.user("typed meanwhile");
    play.task_answers("t", calls(&[("t", "read", json!({}))]));
    play.within("t", read("t"));
    play.within("t", result("t", "fn it() {}"));
    let context = play.machine.task_context("t").unwrap();
    let body = context.unchanged_view().body("anthropic").unwrap().body;
    assert!(body.contains("Find it.") && body.contains("fn it() {}"), "{body}");
    assert!(!body.contains("meanwhile") && !body.contains("the other"), "{body}");
    play.task_answers("u", says("It is not there."));
    play.task_answers("t", says("It is in a.rs."));
    let expect = ["go", "t?", "u?", "u: It is not there.", "t: It is in a.rs.", "typed meanwhile"];
    assert_eq!(play.texts(), expect);
    assert!(play.machine.task_context("t").is_none());
    play.answers(says("Found."));
    assert_eq!(play.ended(), Some((TurnEnd::Answered, String::new())));
    // Five answers at 1,000 each: three of sub-agents, and two of the session's model.
    assert_eq!(play.machine.cost().cost, MicroDollars(5_000));
    let of_task = play.shown_of("t");
    let is_call = |event: &&&Event| matches!(event, Event::Call { id, .. } if id == "t");
    assert_eq!(of_task.iter().filter(is_call).count(), 1, "{of_task:?}");
    assert!(matches!(of_task.last(), Some(Event::Done { .. })), "{of_task:?}");
}

#[test]
fn a_task_that_does_not_begin_or_has_no_answer_says_so_to_the_model() {
    for (arguments, begun, expect) in [
        (task(" "), None, "t: the prompt is empty"),
        (task("x"), Some(Err("no room".to_owned())), "t: no room"),
        (
            task("x"),
            Some(Ok(task_context())),
            "t: The task ended without an answer: the model returned an empty answer",
        ),
    ] {
        let mut play = Play::new("epitome", 200_000);
        play.user("go");
        play.answers(calls(&[("t", "task", arguments)]));
        play.input(Input::Checked("t".into(), Ok(Access::Own)));
        if let Some(begun) = begun {
            let ends_at_once = begun.is_err();
            play.input(Input::Begun("t".into(), begun));
            if !ends_at_once {
                play.task_answers("t", response(&json!([]), "end_turn"));
            }
        } else {
            let failed = crate::tools::task(&task(" ").to_string()).unwrap_err();
            play.input(Input::Begun("t".into(), Err(failed)));
        }
        assert_eq!(play.texts()[2], expect);
        play.answers(says("done"));
    }
}

#[test]
fn a_task_has_the_permissions_and_the_budget_of_the_session_and_no_tasks() {
    let mut play = Play::new("epitome", 200_000);
    let all = [("t", "task", task("x")), ("w", "write", json!({}))];
    play.begins(&all, 1);
    play.input(Input::Checked("w".into(), Ok(Access::Write("/p/w".into()))));
    let inner = ["task", "ask", "write", "write"];
    let inner: Vec<(String, &str)> =
        inner.iter().enumerate().map(|(n, tool)| (format!("c{n}"), *tool)).collect();
    let inner: Vec<(&str, &str, Value)> =
        inner.iter().map(|(id, tool)| (&**id, *tool, json!({}))).collect();
    play.task_answers("t", calls(&inner));
    for id in ["c2", "c3"] {
        play.within("t", Input::Checked(id.into(), Ok(Access::Write(format!("/p/{id}").into()))));
    }
    // "Always", as an answer about a call of a sub-agent, also applies to the session and to its
    // waiting calls.
    play.within("t", Input::Permission("c2".into(), Answer::Always));
    let allowed = Event::Permitted { id: "w".into(), allowed: true };
    assert!(play.shown.contains(&allowed), "{:?}", play.shown);
    let allowed = Event::Permitted { id: "c3".into(), allowed: true };
    assert!(play.shown_of("t").contains(&&allowed), "{:?}", play.shown);
    for id in ["c2", "c3"] {
        play.within("t", result(id, "written"));
    }
    let context = play.machine.task_context("t").unwrap();
    let body = context.unchanged_view().body("anthropic").unwrap().body;
    for tool in ["task", "ask"] {
        assert!(body.contains(&format!("there is no tool `{tool}` in a task")), "{body}");
    }
    // The cost of a task is part of the cost that the budget limits.
    play.machine.set_budget(Some(MicroDollars(2_500)));
    play.task_answers("t", calls(&[("c4", "read", json!({}))]));
    play.within("t", read("c4"));
    play.within("t", result("c4", "text"));
    let ended = "t: The task ended without an answer: the budget of $0.0025 is spent";
    assert!(play.texts()[3].starts_with(ended), "{:?}", play.texts());
    play.input(result("w", "written"));
    assert_eq!(play.ended().unwrap().0, TurnEnd::Budget);
}

#[test]
fn an_interrupted_task_ends_with_its_calls_closed_and_late_answers_cost_what_they_cost() {
    let mut play = Play::new("epitome", 200_000);
    play.begins(&[("t", "task", task("x")), ("u", "task", task("y"))], 2);
    play.task_answers("t", calls(&[("c", "read", json!({}))]));
    play.within("t", read("c"));
    play.input(Input::Cancel);
    let [t, u] = ["t", "u"].map(|id| format!("{id}: {INTERRUPTED}"));
    assert_eq!(play.texts()[3..], [t, u]);
    let closed = Event::Result { id: "c".into(), error: true, text: INTERRUPTED.into() };
    assert!(play.shown_of("t").contains(&&closed), "{:?}", play.shown);
    assert!(play.machine.is_idle());
    play.within("t", result("c", "late"));
    play.within("u", Input::Response(1, Box::new(says("late")), Some(MicroDollars(1_000))));
    assert_eq!(play.texts().len(), 5);
    assert_eq!(play.machine.cost().cost, MicroDollars(3_000));
    // The task that was about to begin does not begin.
    play.input(Input::Begun("u".into(), Ok(task_context())));
    assert!(play.machine.task_context("u").is_none());
    play.user("go on");
    play.answers(says("yes"));
}
