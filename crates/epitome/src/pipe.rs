//! Runs contexts of agents over a pipe, for agents in any language. [`epitome_engine::pipe`] has
//! the protocol. This module adds logs in a folder, and models of providers.

mod logs;

use std::sync::Arc;

use epitome_engine::pipe::SummaryModel;
use epitome_llm::{RetryingModel, Stop};
use epitome_passes::{NoReply, Reply, Writer};
use serde_json::{Value, json};

use crate::drive::summary_writer;
use crate::live::{Question, ask_model};

pub use epitome_engine::pipe::{LogStore, Server, ServerOptions, Size, error_json, parse_options};
pub use logs::Logs;

/// A model of a provider, which writes the summaries of a [`Server`].
pub struct ProviderModel(Arc<RetryingModel>);

impl ProviderModel {
    /// The writer of summaries that calls this model.
    pub fn new(model: Arc<RetryingModel>) -> ProviderModel {
        ProviderModel(model)
    }
}

impl SummaryModel for ProviderModel {
    fn writer(&self) -> Writer {
        summary_writer(&*self.0)
    }

    fn answer(&self, question: &Question) -> Result<Reply, NoReply> {
        ask_model(&*self.0, &Stop::default())(question)
    }

    fn spent(&self) -> Value {
        json!(self.0.spent())
    }
}
