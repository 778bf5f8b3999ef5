//! Arbitrary orders of inputs.

use super::*;

/// What happens next in a random sequence.
#[derive(Clone, Debug)]
enum Happens {
    Types(u8),
    Streams,
    Says(bool),
    Calls(Vec<u8>),
    Within(u8),
    Fails,
    TooLong,
    Empty,
    CutOff,
    Checked(bool),
    Permitted(u8),
    Ended(usize),
    Summary(bool),
    Prepared,
    Compacts,
    Undoes,
    Cancels,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        3 => any::<u8>().prop_map(Happens::Types),
        1 => Just(Happens::Streams),
        2 => any::<bool>().prop_map(Happens::Says),
        6 => proptest::collection::vec(0..5u8, 1..4).prop_map(Happens::Calls),
        8 => (0..6u8).prop_map(Happens::Within),
        1 => Just(Happens::Fails),
        1 => Just(Happens::TooLong),
        1 => Just(Happens::Empty),
        1 => Just(Happens::CutOff),
        6 => proptest::bool::weighted(0.8).prop_map(Happens::Checked),
        3 => (0..4u8).prop_map(Happens::Permitted),
        6 => (0..2_000usize).prop_map(Happens::Ended),
        2 => any::<bool>().prop_map(Happens::Summary),
        3 => Just(Happens::Prepared),
        1 => Just(Happens::Compacts),
        1 => Just(Happens::Undoes),
        1 => Just(Happens::Cancels),
    ]
}

impl Play {
    fn respond(&mut self, response: Response) {
        if let Some(request) = self.request() {
            self.input(Input::Response(request, Box::new(response), None));
        }
    }

    fn happen(&mut self, what: &Happens, n: usize) {
        match what {
            Happens::Types(n) => self.user(&format!("words {n}")),
            Happens::Streams => {
                let sent = self.actions.iter().find_map(|it| match it {
                    Action::Send(request) => Some(*request),
                    _ => None,
                });
                sent.into_iter().for_each(|it| self.input(Input::Text(it, "part".into())));
            }
            Happens::Says(thinks) => {
                let mut content = vec![json!({"type": "text", "text": format!("answer {n}")})];
                if *thinks {
                    let thought =
                        json!({"type": "thinking", "thinking": "hm", "signature": "cw=="});
                    content.insert(0, thought);
                }
                self.respond(response(&content.into(), "end_turn"));
            }
            Happens::Calls(kinds) => {
                let name = |kind: u8| ["compact", "read", "read", "task", "ask"][usize::from(kind)];
                let ids: Vec<String> = (0..kinds.len()).map(|k| format!("c{n}_{k}")).collect();
                let arguments =
                    json!({"question": "?", "prompt": "Look.", "description": "a look"});
                let made = kinds.iter().zip(&ids);
                let made = made.map(|(kind, id)| (&**id, name(*kind), arguments.clone()));
                self.respond(calls(&made.collect::<Vec<_>>()));
            }
            Happens::Fails => {
                if let Some(request) = self.request() {
                    self.input(Input::Failed(request, Failure::Half("gone".into())));
                }
            }
            Happens::TooLong => {
                if let Some(request) = self.request() {
                    let message = "prompt is too long".to_owned();
                    let failure = Failure::TooLong { limit: None, message, used: None };
                    self.input(Input::Failed(request, failure));
                }
            }
            Happens::Empty => self.respond(response(&json!([]), "end_turn")),
            Happens::CutOff => {
                self.respond(response(&json!([{"type": "text", "text": "cut"}]), "max_tokens"));
            }
            Happens::Checked(_)
            | Happens::Permitted(_)
            | Happens::Ended(_)
            | Happens::Prepared
            | Happens::Summary(_) => self.carry_out(what, n),
            Happens::Compacts => self.input(Input::Compact(None)),
            Happens::Undoes => self.input(Input::Undo),
            Happens::Cancels => self.input(Input::Cancel),
            Happens::Within(n) => self.happen_within(*n),
        }
    }

    /// Carries out the newest action of a sub-agent.
    fn happen_within(&mut self, n: u8) {
        let Some(Action::Task(task, action)) = self.take(|it| matches!(it, Action::Task(..)))
        else {
            return;
        };
        let input = match (*action, n) {
            (Action::Send(request), 0) => Input::Failed(request, Failure::Half("gone".into())),
            (Action::Send(request), 1) => Input::Response(request, Box::new(says("found")), None),
            (Action::Send(request), _) => {
                let called = calls(&[("a", "read", json!({})), ("b", "task", json!({}))]);
                Input::Response(request, Box::new(called), None)
            }
            (Action::Prepare(n, prepared), _) => prepared_by(n, prepared),
            (Action::Ask(request, _), _) => Input::Summary(request, Err(NoReply::NoModel), None),
            (Action::Check(called), _) => {
                let path = if n < 3 { "/p/a" } else { "/etc" };
                Input::Checked(called.id, Ok(Access::Read(path.into())))
            }
            (Action::Permit(called, _), _) => Input::Permission(called.id, Answer::Always),
            (Action::Run(called, _), _) => {
                result(&called.id, &"line\n".repeat(usize::from(n) * 99))
            }
            (action, _) => panic!("{action:?} in a task"),
        };
        self.within(&task, input);
    }

    /// Carries out an open action, if there is one for `what`, and passes the result to the
    /// machine.
    fn carry_out(&mut self, what: &Happens, n: usize) {
        match what {
            Happens::Checked(free) => {
                if let Some(Action::Check(called)) = self.take(|it| matches!(it, Action::Check(_)))
                {
                    if ["task", "ask"].contains(&&*called.name) {
                        return self.input(Input::Checked(called.id, Ok(Access::Own)));
                    }
                    let path = if *free { "/p/a" } else { "/etc" };
                    self.input(Input::Checked(called.id, Ok(Access::Read(path.into()))));
                }
            }
            Happens::Permitted(n) => {
                let answers = [Answer::Once, Answer::Always, Answer::No, Answer::Unattended];
                let asked = self.take(|it| matches!(it, Action::Permit(..)));
                if let Some(Action::Permit(called, _)) = asked {
                    self.input(Input::Permission(called.id, answers[usize::from(*n)]));
                }
            }
            Happens::Ended(lines) => {
                if let Some(Action::Begin(called)) = self.take(|it| matches!(it, Action::Begin(_)))
                {
                    let begun = if *lines < 100 { Err("no".into()) } else { Ok(task_context()) };
                    return self.input(Input::Begun(called.id, begun));
                }
                let asked = self.take(|it| matches!(it, Action::Question(..)));
                if let Some(Action::Question(called, _)) = asked {
                    let answer = (*lines > 500).then(|| "yes".to_owned());
                    let answer = answer.ok_or(NoAnswer::Declined);
                    return self.input(Input::Told(called.id, answer));
                }
                if let Some(Action::Run(called, _)) = self.take(|it| matches!(it, Action::Run(..)))
                {
                    self.input(result(&called.id, &format!("line of {n}\n").repeat(*lines)));
                }
            }
            Happens::Prepared => {
                let begun = self.take(|it| matches!(it, Action::Prepare(..)));
                if let Some(Action::Prepare(n, prepared)) = begun {
                    self.input(prepared_by(n, prepared));
                }
            }
            Happens::Summary(good) => {
                let asked = self.take(|it| matches!(it, Action::Ask(..)));
                if let Some(Action::Ask(request, _)) = asked {
                    let reply = Reply {
                        text: "All is well.".into(),
                        stopped: epitome_model::StopReason::End,
                        used: None,
                    };
                    let reply = if *good { Ok(reply) } else { Err(NoReply::NoModel) };
                    self.input(Input::Summary(request, reply, None));
                }
            }
            Happens::Types(_)
            | Happens::Streams
            | Happens::Says(_)
            | Happens::Calls(_)
            | Happens::Fails
            | Happens::TooLong
            | Happens::Empty
            | Happens::CutOff
            | Happens::Compacts
            | Happens::Undoes
            | Happens::Within(_)
            | Happens::Cancels => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever the order of inputs: services accept every request, interrupted calls have results,
    /// and the machine is idle or waits for something.
    #[test]
    fn no_order_of_events_breaks_a_pair(
        recipe in proptest::sample::select(vec!["epitome", "digest", "s06", "ion", "s08", "pi"]),
        in_background in any::<bool>(),
        all in proptest::collection::vec(happens(), 1..60),
    ) {
        let mut recipe = built_in(recipe).unwrap();
        recipe.live.background = in_background;
        let mut play = Play::from_setup(Setup::new(recipe).with_window(Tokens(24_000)));
        for (n, what) in all.iter().enumerate() {
            play.happen(what, n);
            prop_assert!(
                play.machine.is_idle() || !play.actions.is_empty(),
                "it waits for nothing after {what:?}"
            );
        }
        play.input(Input::Cancel);
        prop_assert!(play.machine.is_idle());
    }
}
