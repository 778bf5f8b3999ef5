//! The answer to a request: the view to send to the model, and the events since the last answer.

use std::collections::BTreeMap;

use epitome_error::{Error, ErrorKind, Result};
use epitome_passes::Event;
use serde::Serialize;

use crate::{Context, Recovery};

/// The view to send to the model, and the events since the last answer.
pub struct Sent {
    /// The name of the member with the view: `messages`, a list, for Anthropic's API; `body`, the
    /// whole body of a request, for others.
    name: &'static str,
    /// The view, as JSON.
    view: String,
    others: Others,
}

/// The members of an answer in addition to the view.
#[derive(Serialize)]
struct Others {
    refs: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<Recovery>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<Event>,
}

impl Sent {
    pub fn from_context(api: &str, context: &mut Context) -> Result<Sent> {
        let outgoing = context.unchanged_view();
        let (name, view) = match api {
            "anthropic" => ("messages", outgoing.messages()),
            api => ("body", outgoing.body(api)?.body),
        };
        let view = if view.is_empty() { "null".to_owned() } else { view };
        let refs = context.references().into_iter().map(|(call, it)| (call, it.to_string()));
        let refs = refs.chain(context.digested_calls());
        let refs = refs.map(|(call, name)| (call.to_owned(), name)).collect();
        let others = Others { refs, refused: None, events: context.events() };
        Ok(Sent { name, view, others })
    }

    /// The answer to a `refused` request: the view, and how the engine handled the provider's
    /// refusal.
    pub fn after(self, recovery: Recovery) -> Sent {
        Sent { others: Others { refused: Some(recovery), ..self.others }, ..self }
    }

    /// The answer as one line. The view may have megabytes: it is JSON already, and is not parsed
    /// again.
    pub fn line(&self) -> Result<String> {
        let others = serde_json::to_string(&self.others)
            .map_err(|err| Error::new(ErrorKind::Broken, err.to_string()))?;
        let others = others.trim_start_matches('{');
        Ok(format!(r#"{{"{}":{},{others}"#, self.name, self.view))
    }
}
