//! A home that looks used: sessions of all agents, an archive, a log, settings.

use std::fs;
use std::path::Path;

use anyhow::ensure;

use crate::machine::{Machine, copy_folder};
use crate::subject::subjects;

/// Settings and other files of a user. Each would change what a test sees if the test read it.
const FILES: &[(&str, &[u8])] = &[
    (".config/epitome/epitome.toml", b"[compaction]\nrecipe = \"s06\"\n"),
    (".config/epitome/recipes/epitome.toml", b"name = \"epitome\"\n"),
    (
        ".gitconfig",
        b"[user]\nname = Ada Lovelace\nemail = ada@example.org\n\
          [core]\nhooksPath = nowhere\n[commit]\ngpgsign = true\n[init]\ndefaultBranch = used\n",
    ),
    (".claude/settings.json", b"{\"model\": \"opus\", \"hooks\": {}}\n"),
    (".codex/config.toml", b"model = \"gpt-5\"\n"),
    (".gemini/settings.json", b"{\"theme\": \"dark\"}\n"),
];

/// Fills `home` so that it looks used: sessions of all agents in their places, some of them
/// compacted, the log of a live context, settings of the user.
///
/// # Errors
///
/// If the disk is full, or the program fails.
pub fn fill(home: &Path, program: &Path) -> anyhow::Result<()> {
    let machine = Machine::new(program)?;
    let mut seen = Vec::new();
    for subject in subjects()? {
        // Two subjects with the same path are one session.
        if seen.contains(&subject.files[0].0) {
            continue;
        }
        seen.push(subject.files[0].0.clone());
        subject.put(&machine)?;
        let done = machine.run(&subject.compact())?;
        ensure!(done.code() == Some(0), "{}: {}", subject.name, done.beginning_of_output());
    }
    // A session that is not compacted.
    crate::subject::gone().put(&machine)?;
    let editor = ".config/Cursor/User/globalStorage/state.vscdb";
    let editor = machine.write(editor, b"")?;
    fixtures::stores::cursor_editor(&editor, &[fixtures::case("cursor", "composer").bytes()]);
    let chat = ".cursor/chats/0f0f/5ce2be00-0000-4000-8000-000000000001/store.db";
    let chat = machine.write(chat, b"")?;
    fixtures::stores::cursor_chat(&chat, &fixtures::case("cursor", "chat").bytes());
    let copilot = ".copilot/session-state/5f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4/events.jsonl";
    machine.write(copilot, &fixtures::case("copilot", "sundays").bytes())?;
    for case in fixtures::cases().iter().filter(|case| case.format == "epitome") {
        let log = format!(".local/share/epitome/live/{}.jsonl", case.name);
        machine.write(&log, &fs::read(&case.session)?)?;
    }
    for (name, bytes) in FILES {
        machine.write(name, bytes)?;
    }
    Ok(copy_folder(&machine.home, home)?)
}
