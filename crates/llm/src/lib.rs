//! Models that are asked for a summary.
//!
//! A [`Model`] answers an [`Ask`], or says in a [`Failure`] whose fault it is
//! that there is no answer. [`Client`] is one that a provider runs; [`Patient`] asks again, asks
//! another one, and keeps the account; [`Catalogue`] knows what models take and cost, and chooses.
//!
//! Nothing here goes anywhere by itself: a [`Client`] is made for a model that somebody named, and
//! speaks with its provider when it is asked.
//!
//! # Absent
//!
//! What is asked, and what becomes of the answer: `epitome-passes` says so. Tools, and
//! conversations. The environment and files: keys and tables are given.

mod catalogue;
mod choice;
mod client;
mod failure;
mod key;
mod name;
mod patience;
mod stop;

use epitome_model::Tokens;
use epitome_passes::{Ask, Reply};

pub use catalogue::{Catalogue, CatalogueError, Known, Price};
pub use choice::{Because, Choice, NoModel, Wanted};
pub use client::{Client, ClientSetup};
pub use failure::{Failure, Whose};
pub use key::Key;
pub use name::{ModelName, NameError, Provider};
pub use patience::{Attempt, Clock, Patience, Patient, RealClock, Spent};
pub use stop::Stop;

/// Something that answers.
pub trait Model: Send + Sync {
    /// Which one it is.
    fn name(&self) -> &ModelName;

    /// What question and answer may have together, if it is known.
    fn window(&self) -> Option<Tokens>;

    /// Asks, and waits for the whole answer or for `stop`. An answer that is cut off, empty or a
    /// call is an answer, and says so.
    ///
    /// # Errors
    ///
    /// A [`Failure`], when there is no answer.
    fn ask(&self, ask: &Ask, stop: &Stop) -> Result<Reply, Failure>;
}
