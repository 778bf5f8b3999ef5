//! The demo in the real interface: each line is typed for the user, and the user sends it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use epitome::live;
use epitome_engine::Context;
use epitome_error::Result;
use epitome_llm::{Catalogue, Model};

use super::model::{ScriptedAnswer, ScriptedModel, Turn};
use super::{WINDOW, project, recipe};
use crate::agent::{Agent, Changes};
use crate::machine::{Event, Limits, Machine, OutsideChange};
use crate::notices::reserve;
use crate::permissions::Permissions;
use crate::session::setup;

/// The minimum number of tokens that the tool `compact` must save. The default is too high for so
/// small a window.
const TOOL: u64 = 1_000;

/// A line that is typed for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptLine {
    /// An explanation that is shown before the line is typed.
    pub about: String,
    /// The line. It is empty in the last item, which only explains.
    pub line: String,
}

/// The demo, ready to be shown.
pub struct Guided {
    /// The agent.
    pub agent: Agent,
    /// The events to show first.
    pub first: Vec<Event>,
    /// The lines that the user sends.
    pub script: Vec<ScriptLine>,
}

/// Prepares the demo in an empty folder. If `is_watched`, a person watches the demo, and the model
/// answers slowly.
///
/// # Errors
///
/// If files cannot be written.
pub fn guided(folder: &Path, is_watched: bool) -> Result<Guided> {
    let place = super::place(folder)?;
    let model = Arc::new(ScriptedModel::with_turns(WINDOW, turns(), is_watched));
    let log = folder.join("demo.jsonl");
    let setup = setup(recipe("epitome")?, &*model, None).with_id("demo");
    let context = live::create(&log, setup)?;
    let permissions = Permissions::new(place.root().to_owned());
    let mut machine = Machine::new(context, permissions, Limits::default())?;
    machine.prompt(super::PROMPT)?;
    let usage = machine.context().usage();
    let kept = reserve(machine.context().window(), usage.usable).unwrap_or_default();
    let about = format!(
        "A scripted model works on a small project in a temporary folder, with the real tools. Its \
         window is small, so that it fills at once: {kept}. [ctx] below is the share of the rest."
    );
    let first = vec![
        session("epitome", &model, &log),
        Event::Notice { text: about },
        Event::Usage { usage, cost: machine.cost() },
    ];
    let agent = Agent::new(machine, model.clone(), Catalogue::built_in(), place);
    let agent = agent.with_changes(DemoChanges { log, model });
    Ok(Guided { agent, first, script: script() })
}

const BUILD: &str = "Why does the build fail? The log is in build.log.";
const READ: &str = "Read every file of src, one by one.";
const RECALL: &str = "What exactly did the compiler say?";
const ROOM: &str = "Make room, then fix it.";

fn script() -> Vec<ScriptLine> {
    [
        (
            "1. A long result is shortened before it is first sent. Each line is typed for you: \
             Enter sends it; y allows the command.",
            BUILD,
        ),
        ("2. When the window fills, what is old becomes a digest of its own lines.", READ),
        ("What went is listed …", "/losses"),
        ("… what is there is shown …", "/context"),
        ("… and a compaction can be taken back.", "/undo"),
        ("3. Nothing is lost: the model reads back what was shortened.", RECALL),
        ("4. By another recipe a model writes a summary. The log stays the same.", "/recipe s06"),
        ("5. The model makes room by itself, with its tool `compact`; then it edits a file.", ROOM),
        (
            "That was the demo. With your own project and model: epitome chat --model \
             anthropic/claude-haiku-4-5. Ctrl-D leaves.",
            "",
        ),
    ]
    .map(|(about, line)| ScriptLine { about: about.to_owned(), line: line.to_owned() })
    .into()
}

fn turns() -> Vec<Turn> {
    let mut reads: Vec<ScriptedAnswer> =
        (0..project::MODULES).map(ScriptedAnswer::read_module).collect();
    reads.push(ScriptedAnswer::say("All modules use the same table of rates."));
    let edit = concat!(
        r#"{"path":"src/pricing.rs","old_string":"net * rate","#,
        r#""new_string":"net as f64 * rate"}"#,
    );
    vec![
        turn(
            BUILD,
            vec![
                ScriptedAnswer::call("shell", r#"{"command":"cat build.log"}"#),
                ScriptedAnswer::say(
                    "src/pricing.rs, line 118: a u64 is given where a f64 is expected (E0308).",
                ),
            ],
        ),
        turn(READ, reads),
        turn(
            RECALL,
            vec![
                ScriptedAnswer::recall("E0308"),
                ScriptedAnswer::say("error[E0308]: mismatched types, at src/pricing.rs:118:20."),
            ],
        ),
        turn(
            ROOM,
            vec![
                ScriptedAnswer::call("compact", r#"{"focus":"the error in pricing"}"#),
                ScriptedAnswer::call("edit", edit),
                ScriptedAnswer::say("Fixed: the amount is converted before it is multiplied."),
            ],
        ),
    ]
}

fn turn(message: &str, steps: Vec<ScriptedAnswer>) -> Turn {
    Turn { message: message.to_owned(), steps }
}

fn session(recipe: &str, model: &ScriptedModel, log: &Path) -> Event {
    Event::Session {
        id: "demo".to_owned(),
        model: model.name().to_string(),
        recipe: recipe.to_owned(),
        log: log.display().to_string(),
        summaries: None,
    }
}

/// Changes the recipe of the demo's log; other changes are refused.
struct DemoChanges {
    log: PathBuf,
    model: Arc<ScriptedModel>,
}

impl Changes for DemoChanges {
    fn begin_task(&mut self, _: &Agent) -> std::result::Result<(Context, Event), String> {
        Err("there are no tasks in the demo".to_owned())
    }

    fn change(
        &mut self,
        change: &OutsideChange,
        agent: &mut Agent,
    ) -> std::result::Result<Vec<Event>, String> {
        let OutsideChange::Recipe(Some(name)) = change else {
            return Err("this cannot be changed in the demo".to_owned());
        };
        let mut recipe = recipe(name).map_err(|err| err.to_string())?;
        recipe.live.tool.min_tokens = TOOL;
        let context = live::open(&self.log, setup(recipe, &*self.model, None));
        let replaced = context.and_then(|context| agent.machine_mut().replace_context(context));
        replaced.map_err(|err| err.to_string())?;
        let machine = agent.machine();
        let usage = machine.context().usage();
        let cost = machine.cost();
        Ok(vec![session(name, &self.model, &self.log), Event::Usage { usage, cost }])
    }
}

#[cfg(test)]
mod tests {
    use epitome_engine::ResponseCall;
    use epitome_passes::Event as ContextEvent;

    use super::*;
    use crate::agent::Front;
    use crate::machine::{Input, TurnEnd};
    use crate::permissions::{Access, Answer};

    struct Kept(Vec<Event>);

    impl Front for Kept {
        fn show(&mut self, event: &Event) {
            self.0.push(event.clone());
        }

        fn permit(&mut self, _: &ResponseCall, _: &Access) -> Option<Answer> {
            Some(Answer::Once)
        }

        fn is_attended(&self) -> bool {
            true
        }
    }

    #[test]
    fn every_line_of_the_demo_does_what_is_said_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let Guided { mut agent, script, .. } = guided(folder.path(), false).unwrap();
        let mut front = Kept(Vec::new());
        for ScriptLine { line, .. } in script.iter().filter(|it| !it.line.is_empty()) {
            front.0.clear();
            let input = match line.as_str() {
                "/losses" => Input::Losses,
                "/context" => Input::Window,
                "/undo" => Input::Undo,
                "/recipe s06" => Input::Change(OutsideChange::Recipe(Some("s06".to_owned()))),
                message => Input::User(message.to_owned()),
            };
            agent.take(input, &mut front).unwrap();
            agent.finish(&mut front).unwrap();
            let is_there = |what: fn(&Event) -> bool| front.0.iter().any(what);
            let answered = |it: &Event| matches!(it, Event::Done { ended: TurnEnd::Answered, .. });
            let compacted =
                |it: &Event| matches!(it, Event::Context { event: ContextEvent::Finished { .. } });
            let shown = match line.as_str() {
                "/losses" => is_there(|it| matches!(it, Event::Losses { .. })),
                "/context" => is_there(|it| matches!(it, Event::Window { .. })),
                "/undo" => is_there(|it| matches!(it, Event::Undone { .. })),
                "/recipe s06" => is_there(|it| matches!(it, Event::Session { .. })),
                READ | ROOM => is_there(answered) && is_there(compacted),
                _ => is_there(answered),
            };
            assert!(shown, "{line}: {:#?}", front.0);
            assert!(!is_there(|it| matches!(it, Event::Result { error: true, .. })), "{line}");
        }
        let fixed = std::fs::read_to_string(folder.path().join("project/src/pricing.rs")).unwrap();
        assert!(fixed.contains("net as f64 * rate"), "{fixed}");
    }
}
