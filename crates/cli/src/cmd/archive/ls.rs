//! `epitome archive ls`: the archived compactions and their sizes.

use std::collections::BTreeMap;
use std::path::Path;

use epitome::archive::{Generation, Sessions};
use epitome::ops::Change;
use epitome_model::Bytes;
use jiff::Timestamp;
use serde::Serialize;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::table::{Side, Table};
use crate::text::{self, DIM, RED, age, change, count, one_line};

/// A compaction in JSON.
#[derive(Serialize)]
struct Row<'a> {
    agent: &'a str,
    id: &'a str,
    generation: u64,
    #[serde(serialize_with = "epitome_model::lossy_path")]
    session: &'a Path,
    recipe: &'a str,
    made: Timestamp,
    disk_bytes: Change<u64>,
    context_tokens: Change<u64>,
    blake3: Change<String>,
    /// The size of the generation on disk.
    stored_bytes: Bytes,
    /// The size on disk of all generations of the session.
    session_stored_bytes: Bytes,
    /// The size on disk of the generations of all sessions.
    archive_stored_bytes: Bytes,
    imported: Option<Timestamp>,
}

impl<'a> Row<'a> {
    fn from_generation(
        it: &'a Generation,
        stored: Bytes,
        session: Bytes,
        archive: Bytes,
    ) -> Row<'a> {
        Row {
            agent: &it.agent,
            id: &it.session,
            generation: it.number,
            session: &it.path,
            recipe: &it.recipe,
            made: it.made,
            disk_bytes: Change { before: it.before.len, after: it.after.len },
            context_tokens: Change { before: it.tokens_before.0, after: it.tokens_after.0 },
            blake3: Change {
                before: it.before.blake3.to_string(),
                after: it.after.blake3.to_string(),
            },
            stored_bytes: stored,
            session_stored_bytes: session,
            archive_stored_bytes: archive,
            imported: it.imported,
        }
    }
}

/// The generations of a session, and the length of each pack by the number of its generation.
struct Kept {
    generations: Vec<Generation>,
    sizes: BTreeMap<u64, Bytes>,
}

pub fn ls(app: &App) -> Result<()> {
    let archive = app.config.archive();
    let Sessions { keys, unread } = archive.sessions_found().map_err(Failure::writing)?;
    let mut damaged = unread.len() as u64;
    let mut kept = Vec::new();
    for key in keys {
        let found = archive.generations(&key).map_err(Failure::writing)?;
        damaged += found.damaged.len() as u64;
        let sizes = archive.sizes(&key).map_err(Failure::writing)?.into_iter().collect();
        kept.push(Kept { generations: found.whole, sizes });
    }
    if damaged > 0 {
        let what = count(damaged, "damaged part");
        app.note(&format!("{RED}{what}{RED:#}: `epitome archive verify` names them"));
    }
    let total: Bytes = kept.iter().flat_map(|it| it.sizes.values().copied()).sum();
    if !app.global.json {
        return app.page(&listed(app, &kept, total));
    }
    for session in &kept {
        let of_session: Bytes = session.sizes.values().copied().sum();
        for it in &session.generations {
            let stored = session.sizes.get(&it.number).copied().unwrap_or_default();
            app.print_json(&Row::from_generation(it, stored, of_session, total))?;
        }
    }
    Ok(())
}

fn listed(app: &App, kept: &[Kept], total: Bytes) -> String {
    use Side::{Left, Right};
    let heads =
        ["agent", "session", "", "age", "recipe", "disk", "", "after", "", "archive", "file"];
    let sides = [Left, Left, Right, Right, Left, Right, Left, Right, Right, Right, Left];
    let table = Table::new(&sides, &heads).shrinks(10, 16).shrinks(1, 9);
    let mut table = table.leaves_out(&[4, 3, 8]);
    let mut packs = 0;
    for session in kept {
        for it in &session.generations {
            packs += 1;
            let before = it.before.len;
            let after = it.after.len;
            let gone = if epitome::storage::exists(&it.path) { "" } else { " (gone)" };
            let imported = if it.imported.is_some() { " (imported)" } else { "" };
            table.row(vec![
                it.agent.clone(),
                one_line(&it.session, 40),
                format!("#{}", it.number),
                age(app.config.now(), it.made),
                one_line(&it.recipe, 24),
                Bytes(before).to_string(),
                "→".to_owned(),
                Bytes(after).to_string(),
                change(before, after),
                session.sizes.get(&it.number).copied().unwrap_or_default().to_string(),
                format!("{}{gone}{imported}", text::path(&it.path)),
            ]);
        }
        if session.generations.len() > 1 {
            let of_session: Bytes = session.sizes.values().copied().sum();
            let mut row = vec![String::new(); sides.len()];
            row[9] = format!("= {of_session}");
            table.row(row);
        }
    }
    let vault = vault_size(app);
    if packs == 0 {
        return format!("the archive is empty\n{vault}");
    }
    let packs = count(packs, "generation");
    let sessions = count(kept.len() as u64, "session");
    format!("{}{DIM}{packs} of {sessions}, {total} on disk{DIM:#}\n{vault}", table.render())
}

/// The size of the stored versions (the vault) in a line; empty if nothing was kept, or if the
/// vault cannot be opened.
fn vault_size(app: &App) -> String {
    let Ok(vault) = app.config.vault() else { return String::new() };
    let (packs, stored) = vault.size();
    let files = count(vault.files().count() as u64, "file");
    let packs = match packs {
        0 => return String::new(),
        packs => count(packs, "pack"),
    };
    format!("{DIM}vault: versions of {files} in {packs}, {} on disk{DIM:#}\n", Bytes(stored))
}
