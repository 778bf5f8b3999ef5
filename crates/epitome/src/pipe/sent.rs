//! The answer to a request: what is sent to the model, and what happened.

use std::collections::BTreeMap;

use crate::live::{Context, Recovery};
use epitome_passes::Event;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::error::{Error, ErrorKind, Result};

/// What is to be sent, and what happened.
#[derive(Serialize)]
pub struct Sent {
    /// In Anthropic's API.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Box<RawValue>>,
    /// In another API: the body of a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    refs: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<Recovery>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<Event>,
}

impl Sent {
    pub fn of(api: &str, context: &mut Context) -> Result<Sent> {
        let view = context.as_it_is();
        let raw = |text: String| {
            RawValue::from_string(text)
                .map_err(|err| Error::new(ErrorKind::Broken, format!("a view is no JSON: {err}")))
        };
        let (mut messages, mut body) = (None, None);
        match api {
            "anthropic" => messages = Some(raw(view.messages())?),
            api => {
                let made = view.body(api)?.body;
                body = Some(raw(if made.is_empty() { "null".into() } else { made })?);
            }
        }
        let refs = context.references().into_iter().map(|(call, it)| (call, it.to_string()));
        let refs = refs.chain(context.digested_calls());
        let refs = refs.map(|(call, name)| (call.to_owned(), name)).collect();
        Ok(Sent { messages, body, refs, refused: None, events: context.events() })
    }

    /// The same after a refusal.
    pub fn after(self, recovery: Recovery) -> Sent {
        Sent { refused: Some(recovery), ..self }
    }

    pub fn line(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|err| Error::new(ErrorKind::Broken, err.to_string()))
    }
}
