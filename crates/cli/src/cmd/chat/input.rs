//! Standard input as a part of the message.

use std::io::{IsTerminal, Read as _, stdin};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::text::DIM;

/// The maximum number of bytes of standard input in a message.
const LONGEST: u64 = 4 << 20;

/// The time after which a note says that the chat waits for the end of standard input.
const PATIENCE: Duration = Duration::from_secs(3);

/// Returns the message of the options, followed by the text from a pipe or file, if there is one.
/// If the message is `-`, returns that text alone.
pub fn message(app: &App, typed: &str) -> Result<String> {
    let is_all = typed.trim() == "-";
    if stdin().is_terminal() && !is_all {
        return Ok(typed.to_owned());
    }
    let text = read(app)?;
    match (text.trim().is_empty(), is_all) {
        (true, true) => Err(Failure::usage("the message is empty: standard input has none")),
        (true, false) => Ok(typed.to_owned()),
        (false, true) => Ok(text),
        (false, false) => Ok(with_block(typed, &text)),
    }
}

fn with_block(typed: &str, text: &str) -> String {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{typed}\n\n<stdin>\n{text}{end}</stdin>\n")
}

fn read(app: &App) -> Result<String> {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdin().lock().take(LONGEST + 1).read_to_end(&mut bytes);
        // Sending cannot fail: the function keeps `told` until it has received the bytes.
        let _unread = tell.send(read.map(|_| bytes));
    });
    let read = told.recv_timeout(PATIENCE).or_else(|_| {
        app.note(&format!("{DIM}waiting for the end of standard input{DIM:#}"));
        told.recv()
    });
    let bytes = read
        .unwrap_or_else(|_| Ok(Vec::new()))
        .map_err(|err| Failure::usage("cannot read standard input").because(&err))?;
    if bytes.len() as u64 > LONGEST {
        let what = format!("standard input has more than {} MiB", LONGEST >> 20);
        return Err(Failure::usage(what).hint("name a file instead: the agent reads it in parts"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_through_a_pipe_is_a_block_behind_the_message() {
        for text in ["+a\n-b", "+a\n-b\n"] {
            assert_eq!(with_block("Review.", text), "Review.\n\n<stdin>\n+a\n-b\n</stdin>\n");
        }
    }
}
