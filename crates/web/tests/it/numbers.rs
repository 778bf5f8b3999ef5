//! The viewer shows the same numbers and states as the library.

use crate::world::World;
use epitome::agents;
use epitome::list::list;
use epitome::ops::{Compact, OpenSession, Restore};
use epitome_passes::built_in;
use epitome_tokens::Estimate;
use epitome_web::Which;

/// The value of a figure on a page, by its label.
fn figure(page: &str, label: &str) -> Option<String> {
    let rest = page.split_once(&format!("<dt>{label}</dt><dd>"))?.1;
    Some(rest.split_once("</dd>")?.0.to_owned())
}

#[test]
fn pages_say_the_numbers_of_the_library() {
    let counter = Estimate::new();
    let recipe = built_in("epitome").expect("a recipe");
    for agent in ["claude", "pi", "codex"] {
        let world = World::new();
        let bytes = fixtures::get(agent, "pricing").bytes();
        match agent {
            "claude" => world.claude("one", bytes),
            "pi" => world.pi("one", bytes),
            _ => world
                .write("codex/sessions/2026/11/20/rollout-2026-11-20T23-12-03-one.jsonl", bytes),
        };
        let files = agents::sessions(&world.config.agents, Some(agent));
        let listed = list(&world.config, files, &recipe, || ());
        let [listed] = listed.as_slice() else { panic!("{agent}: {listed:?}") };
        let seen = listed.seen.as_ref().expect("it can be read");
        let viewer = world.serve(Which::All);
        let page = viewer.get(&viewer.sessions("")[0]).body;
        let turns = seen.turns.expect("it was read");
        let label = if turns == 1 { "turn" } else { "turns" };
        assert_eq!(figure(&page, label), Some(turns.to_string()), "{agent}");
        let mut lists = std::iter::repeat_with(|| viewer.get("").body);
        let rows = lists.find(|list| !list.contains("id=\"unread\"")).expect("a list");
        assert!(rows.contains(&format!("<span>{}</span>", listed.size())), "{agent}: {rows}");
        let folder = viewer.sessions("")[0].trim_end_matches("session.html").to_owned();
        let plan = viewer.get(&format!("{folder}plan")).body;
        let path = &listed.file.path;
        let run = world.config.begin_run("test");
        let opened = OpenSession::new(&world.config, path);
        let planned = Compact::new(&recipe, &counter, &run).plan(&opened, |_, _| {});
        let planned = planned.expect("a plan").file;
        let tokens_text = figure(&plan, "messages, tokens (estimate)").expect("a figure");
        let tokens = planned.context_tokens;
        let tokens = format!("{} → {} ", tokens.before, tokens.after);
        assert!(tokens_text.starts_with(&tokens), "{agent}: {tokens_text}");
        let billed = planned.billed.map(|it| {
            let label = format!("request, as billed ({it})");
            figure(&plan, &label).unwrap_or_else(|| panic!("{agent}: {label}: {plan}"))
        });
        assert_eq!(billed.is_some(), plan.contains("as billed"), "{agent}");
        let net = format!("net, with {} in the archive", planned.archive_bytes);
        assert!(figure(&plan, &net).is_some(), "{agent}: {net}");
    }
}

#[test]
fn a_session_that_another_program_restores_is_ordinary_at_once() {
    let world = World::new();
    let path = world.claude("one", fixtures::get("claude", "pricing").bytes());
    let (counter, recipe) = (Estimate::new(), built_in("gitclaw").expect("a recipe"));
    let viewer = world.serve(Which::All);
    let is_compacted = || {
        // Sessions are read in the background, and the list waits only for a moment.
        let mut lists = std::iter::repeat_with(|| viewer.get("").body);
        let list = lists.find(|list| !list.contains("id=\"unread\"")).expect("a list");
        list.contains("class=\"done\">compacted")
    };
    assert!(!is_compacted());
    // The file has its former size and time again before the list is requested.
    let run = world.config.begin_run("test");
    let opened = OpenSession::new(&world.config, &path);
    let compact = Compact::new(&recipe, &counter, &run);
    compact.run(&opened).expect("a compaction");
    Restore::default().run(&opened).expect("a restore");
    assert!(!is_compacted());
    compact.run(&opened).expect("a compaction");
    assert!(is_compacted());
    Restore::default().run(&opened).expect("a restore");
    assert!(!is_compacted());
}
