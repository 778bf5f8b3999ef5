//! Live contexts, with their log in memory or in a file. See [`epitome_engine`] and
//! `docs/library.md`.

mod log;

use epitome_llm::{Model, Stop};
use epitome_passes::{NoReply, Reply};

pub use epitome_engine::{
    Called, Context, Hit, Journal, KnownBy, Next, NotDone, Origin, Outcome, Outgoing, Overflow,
    Preparation, Question, Recalled, Recovery, Report, Said, Setup, Speaker, WindowUse,
    compact_tool, overflow,
};
pub use epitome_formats::epitome::{last_origin, origin as first_origin};
pub use log::{create, open};

use crate::drive::no_reply;

/// A function for [`Context::view_with`] that has summaries written by `model`.
pub fn written_by<'a>(
    model: &'a dyn Model,
    stop: &'a Stop,
) -> impl FnMut(&Question) -> Result<Reply, NoReply> + 'a {
    |question| model.ask(&question.ask, stop).map_err(|failure| no_reply(model, failure))
}
