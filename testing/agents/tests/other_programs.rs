//! Other programs show the same figures of sessions before and after `epitome compact`.
//!
//! They are installed from npm and PyPI, and `EPITOME_PROGRAM` names the program:
//! `cargo lab e2e tools` runs this.

use std::fs;
use std::path::{Path, PathBuf};

use agents::readers::{self, Reader};
use anyhow::{Context, ensure};

/// Sessions of real work, each with its agent, which are read too if they are available. In some
/// versions of Claude Code the records of a response have different usage.
const REAL: [(&str, &str); 5] = [
    ("entire-02", "claude"),
    ("entire-08", "claude"),
    ("packmind-02", "claude"),
    ("agentv-12", "codex"),
    ("pimono-02", "pi"),
];

/// How sessions are compacted: in the default way, and as a rewrite.
const WAYS: [&[&str]; 2] = [&[], &["--rewrite"]];

fn check(reader: Reader) -> anyhow::Result<()> {
    if !reader.has_installer() {
        fixtures::skipped(reader.name(), "there is no npm, or no python3 with venv");
        return Ok(());
    }
    let program = std::env::var_os("EPITOME_PROGRAM").context("EPITOME_PROGRAM is not set")?;
    for way in WAYS {
        let folder = tempfile::tempdir()?;
        let home = fs::canonicalize(folder.path())?;
        fill(&home)?;
        let before = reader.figures(&home).context(reader.name())?;
        readers::compact(&PathBuf::from(&program), &home, way)?;
        let after = reader.figures(&home).context(reader.name())?;
        for (before, after) in before.iter().zip(&after) {
            ensure!(before == after, "{} {way:?}:\n{before}\n{after}", reader.name());
        }
        ensure!(!before.is_empty() && before.len() == after.len(), "{}", reader.name());
    }
    Ok(())
}

/// Stores the recorded sessions where their agents keep them.
fn fill(home: &Path) -> anyhow::Result<()> {
    for fixture in fixtures::all() {
        let bytes = fixture.bytes();
        if fixture.agent == "opencode" {
            if fixture.name == "pricing" {
                let folder = home.join(".local/share/opencode");
                fs::create_dir_all(&folder)?;
                fixtures::stores::opencode(&folder.join("opencode.db"), &bytes);
            }
            continue;
        }
        let text = String::from_utf8_lossy(&bytes);
        let place = readers::place(&fixture.agent, &fixture.name, &text);
        // No program reads sessions of that agent.
        let Some(place) = place else { continue };
        let path = home.join(place);
        fs::create_dir_all(path.parent().context("a file has a folder")?)?;
        fs::write(path, bytes)?;
    }
    for real in fixtures::corpus("other programs over real sessions") {
        let known = REAL.into_iter().find(|(name, _)| *name == real.name);
        let Some((name, agent)) = known else { continue };
        let bytes = real.bytes();
        let place = readers::place(agent, name, &String::from_utf8_lossy(&bytes));
        let path = home.join(place.context("no place for a session")?);
        fs::create_dir_all(path.parent().context("a file has a folder")?)?;
        fs::write(path, bytes)?;
    }
    Ok(())
}

#[test]
fn ccusage_shows_the_same_figures() -> anyhow::Result<()> {
    check(Reader::Ccusage)
}

#[test]
fn ccusage_for_codex_shows_the_same_figures() -> anyhow::Result<()> {
    check(Reader::CcusageCodex)
}

#[test]
fn claude_code_log_shows_the_same_figures() -> anyhow::Result<()> {
    check(Reader::ClaudeCodeLog)
}
