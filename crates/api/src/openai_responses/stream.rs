//! Events of a streamed response of the Responses API:
//! <https://platform.openai.com/docs/api-reference/responses-streaming>.

use std::collections::BTreeMap;

use epitome_json::Value;
use epitome_model::encode;

use crate::response::{count, raw};
use crate::stream::{Assembler, unfinished};
use crate::{BadResponse, Delta, OnDelta};

/// A streamed response. The last event contains the whole response. Some services leave out the
/// items in it; then the items of earlier events are used.
#[derive(Default)]
pub struct Events {
    /// Complete items, by their index in the output.
    items: BTreeMap<u64, String>,
    /// From the last event: the members of the response except `output`, and `output` if it is not
    /// empty.
    ended: Option<(Vec<String>, Option<String>)>,
}

impl Assembler for Events {
    fn event(&mut self, event: &Value<'_>, on: OnDelta<'_>) -> Result<(), BadResponse> {
        let delta = event.text_of("delta").unwrap_or_default();
        match event.text_of("type").unwrap_or_default().as_ref() {
            "response.output_text.delta" => on(Delta::Text(&delta)),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                on(Delta::Thinking(&delta));
            }
            "response.output_item.added" => {
                let name = event.get("item").and_then(|item| item.text_of("name"));
                name.iter().for_each(|name| on(Delta::Call(name)));
            }
            "response.output_item.done" => {
                let place = count(Some(event), "output_index").map(|place| place.0);
                let place = place.unwrap_or(self.items.len() as u64);
                self.items.extend(event.get("item").map(|item| (place, raw(item))));
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                let response = event.get("response");
                let members = response.map_or(&[][..], Value::members).iter();
                let others = members.filter(|(key, _)| key != "output");
                let others =
                    others.map(|(key, value)| format!("{}:{}", encode(key), raw(value))).collect();
                let output = response.and_then(|response| response.get("output"));
                let output = output.filter(|output| !output.list().is_empty()).map(raw);
                self.ended = Some((others, output));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<String, BadResponse> {
        let Events { items, ended } = *self;
        let (mut members, output) = ended.ok_or_else(unfinished)?;
        let output = output
            .unwrap_or_else(|| format!("[{}]", items.into_values().collect::<Vec<_>>().join(",")));
        members.push(format!(r#""output":{output}"#));
        Ok(format!("{{{}}}", members.join(",")))
    }
}
