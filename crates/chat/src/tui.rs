//! The terminal interface of the agent.
//!
//! [`State`] is the content of the screen as data. [`State::update`] handles an input and returns
//! what to do; [`draw`] draws the state. Neither does input or output. [`run`] is the loop around
//! them: it reads the terminal, and runs the agent on a thread.
//!
//! In every text of a model, a tool or a file, visible signs replace the control characters: none
//! reaches the terminal.

mod draw;
mod editor;
mod entry;
mod keys;
mod markdown;
mod preview;
mod question;
mod scroll;
mod state;
mod terminal;
#[cfg(test)]
mod testing;
mod text;
mod theme;

pub use draw::draw;
pub use preview::Preview;
pub use state::{Effect, Happening, State};
pub use terminal::{ChatScreen, Stopper, run};
pub use theme::Theme;
