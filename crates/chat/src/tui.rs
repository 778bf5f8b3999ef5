//! The terminal interface of the agent.
//!
//! [`State`] is what is on the screen, as data: [`State::update`] takes what happened and returns
//! what is to be done, [`draw`] draws it. Neither reads nor writes anything. [`run`] is the loop
//! around them: it reads the terminal, and has the agent on a thread of its own.
//!
//! Every text of a model, a tool or a file is shown with its control characters made visible: none
//! reaches the terminal as such.

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
pub use terminal::{Started, Stopper, run};
pub use theme::Theme;
