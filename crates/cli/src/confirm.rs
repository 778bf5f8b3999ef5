//! Confirmation before something is written.

use std::io::IsTerminal;

use crate::app::App;
use crate::failure::{Failure, Result, Status};
use crate::text::BOLD;

/// Whether the user can be asked: standard input is a terminal.
pub fn can_ask() -> bool {
    std::io::stdin().is_terminal()
}

/// Asks the user whether to continue, unless `yes` is set. Returns an error if the answer is not
/// yes, or if the user cannot be asked.
pub fn ask_to_continue(app: &App, yes: bool, question: &str) -> Result<()> {
    if yes {
        return Ok(());
    }
    if !can_ask() {
        return Err(Failure::usage(
            "standard input is not a terminal: cannot ask for confirmation",
        )
        .hint("--yes goes on without asking; nothing was changed"));
    }
    app.note(&format!("{BOLD}{question}{BOLD:#} [y/N]"));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|err| {
        Failure::new(Status::Unreadable, "unreadable", "cannot read the answer").because(&err)
    })?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        Ok(())
    } else {
        Err(Failure::new(Status::Refused, "not-wanted", "nothing was changed"))
    }
}
