//! Plans the compaction of a session, compacts a copy of the session, and restores the copy to the
//! byte.
//!
//!     cargo run -p epitome --example compact -- ~/.claude/projects/PROJECT/SESSION.jsonl
//!
//! The session itself is only read: the copy and its archive are in a temporary folder.

#![allow(clippy::print_stdout)] // It is what an example is for.

use std::error::Error;
use std::fs;
use std::path::Path;

use epitome::Config;
use epitome::ops::{Compact, OpenSession, Restore};
use epitome_passes::built_in;
use epitome_tokens::O200k;

fn main() -> Result<(), Box<dyn Error>> {
    let session = std::env::args_os().nth(1).ok_or("usage: compact SESSION")?;
    let home = tempfile::tempdir()?;
    let copy = home.path().join("session.jsonl");
    let original = fs::read(Path::new(&session))?;
    fs::write(&copy, &original)?;

    let config = Config::from_home(home.path());
    let run = config.begin_run("the example");
    let recipe = built_in("epitome").ok_or("a recipe of this name")?;
    let counter = O200k::new();
    let compact = Compact::new(&recipe, &counter, &run);

    let plan = compact.plan(&OpenSession::new(&config, &copy), |_, _| {})?;
    println!("planned: {:?} tokens", plan.tokens());
    compact.run(&OpenSession::new(&config, &copy))?;
    println!("bytes: {} of {}", fs::metadata(&copy)?.len(), original.len());

    Restore::default().run(&OpenSession::new(&config, &copy))?;
    assert!(fs::read(&copy)? == original, "every byte is back");
    println!("restored: every byte is back");
    Ok(())
}
