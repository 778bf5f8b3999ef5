//! The session browser: what `epitome` alone shows on a terminal.
//!
//! A key that changes a session or makes a file from it runs a command of the program, so the
//! browser can do nothing to a session that a command cannot.

mod draw;
mod menu;
mod picker;
mod rows;
mod state;
mod terminal;
#[cfg(test)]
mod tests;
mod view;
mod worker;

use crate::app::App;
use crate::failure::Result;

/// Shows all sessions until the user leaves.
pub fn run(app: &App) -> Result<()> {
    terminal::run(app)
}
