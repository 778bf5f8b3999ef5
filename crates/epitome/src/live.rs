//! Contexts of running agents, with their log in memory or in a file. The types are those of
//! [`epitome_engine`]; `docs/library.md` has a guide.
//!
//! ```
//! use epitome::live::{self, Setup};
//!
//! # let home = tempfile::tempdir().expect("a folder");
//! # let path = home.path().join("log.jsonl");
//! # let recipe = || epitome::built_in("epitome").expect("a recipe");
//! live::create(&path, Setup::new(recipe()))?.user("Hello.")?;
//! let context = live::open(&path, Setup::new(recipe()))?;
//! assert_eq!(context.report().entries, 1);
//! # Ok::<(), epitome::Error>(())
//! ```

mod log;

use epitome_llm::{Model, Stop};
use epitome_passes::{NoReply, Reply};

pub use epitome_engine::{
    Context, Hit, Journal, MessagePart, Next, NotDone, Origin, Outcome, Outgoing, Overflow,
    OverflowSign, Preparation, Question, RecallResult, Recovery, ResponseCall, SavingsReport,
    Setup, Speaker, WindowUse, compact_tool, overflow,
};
pub use epitome_formats::epitome::{last_origin, origin as first_origin};
pub use log::{create, open};

use crate::drive::no_reply;

/// Returns a function for [`Context::view_with`] that has `model` write each summary. Another
/// thread can cancel a request to the model with `stop`.
pub fn ask_model<'a>(
    model: &'a dyn Model,
    stop: &'a Stop,
) -> impl FnMut(&Question) -> Result<Reply, NoReply> + 'a {
    |question| model.ask(&question.ask, stop).map_err(|failure| no_reply(model, failure))
}
