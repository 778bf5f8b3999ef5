//! A whole request to a model: what is sent, and how the model is to respond.

use epitome_model::{Source, Transcript, encode};

use super::{Api, Endpoint, RequestBody, SummaryAs, Tool};

/// What is sent to a model: the context of a transcript.
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    /// The transcript; its [`context`](Transcript::context) is sent.
    pub transcript: &'a Transcript,
    /// The source that the spans of the transcript point into.
    pub source: &'a dyn Source,
    /// How a summary is sent.
    pub summary: SummaryAs,
}

/// How a model is to respond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options<'a> {
    /// The model, by the name that the service uses.
    pub model: &'a str,
    /// The maximum number of tokens in the response, reasoning included.
    pub max_tokens: u64,
    /// The tools that the model may call.
    pub tools: &'a [Tool<'a>],
    /// Whether the response is streamed.
    pub stream: bool,
    /// Whether the model reasons. If it does and there are tools, a request to OpenAI's Responses
    /// API asks for reasoning that can be sent back; models without reasoning refuse this option.
    pub reasons: bool,
}

impl Api {
    /// Makes the body of a request. The body is empty if the transcript has nothing to send.
    ///
    /// ```
    /// use epitome_api::{Options, Outgoing, SummaryAs, anthropic, find_api};
    ///
    /// let body = br#"{"messages":[{"role":"user","content":"Hi"}]}"#.to_vec();
    /// let transcript = (anthropic::FORMAT.read)(&body, &mut ());
    /// let summary = SummaryAs::User;
    /// let outgoing = Outgoing { transcript: &transcript, source: &body, summary };
    /// let options =
    ///     Options { model: "m", max_tokens: 9, tools: &[], stream: false, reasons: false };
    /// let api = find_api("openai-chat").expect("an API");
    /// assert_eq!(
    ///     api.request(&api.endpoint, &outgoing, &options).body,
    ///     r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}"#,
    /// );
    /// ```
    pub fn request(
        &self,
        endpoint: &Endpoint,
        outgoing: &Outgoing<'_>,
        options: &Options<'_>,
    ) -> RequestBody {
        let Outgoing { transcript, source, summary } = *outgoing;
        let mut made = (self.make_as)(transcript, source, summary);
        let Some(rest) = made.body.strip_prefix('{') else { return made };
        let model = if endpoint.model_in_body {
            format!(r#""model":{},"#, encode(options.model))
        } else {
            String::new()
        };
        let members = (self.options)(options, rest);
        made.body = format!("{{{model}{}{members}{rest}", endpoint.members);
        made
    }
}

/// The member `tools` of a body, followed by a comma; empty if there are no tools.
pub(crate) fn tools(tools: &[Tool<'_>], offer: fn(&Tool<'_>) -> String) -> String {
    if tools.is_empty() {
        return String::new();
    }
    let tools: Vec<String> = tools.iter().map(offer).collect();
    format!(r#""tools":[{}],"#, tools.join(","))
}
