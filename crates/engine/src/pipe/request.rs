//! Requests: each has an operation and members. An unknown member is an error, because otherwise a
//! misspelt one would be ignored without notice.

use epitome_error::{Error, ErrorKind, Result};
use epitome_model::Tokens;
use epitome_passes::{NoReply, Reply, StopReason, TokenUsage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::members::{Member, Members, from_members};

/// An upper limit for token counts in requests.
const MOST: u64 = 1_000_000_000_000;

/// A request of a client.
pub enum Request<'l> {
    Hello(Hello),
    Reset(Begin),
    Open(Open),
    Call(Call<'l>),
    /// Adds the messages to the context, and does not compact it even if that is due.
    Push(Call<'l>),
    /// Like `Call`, but the answer does not contain the view. It says whether the view has changed
    /// in another way than by the addition of messages, and has the events.
    Step(Call<'l>),
    /// Like `Call`, but the request has the whole list of messages, and not only the new ones.
    View(Call<'l>),
    Force(Force<'l>),
    Usage,
    Compact(Compact),
    Refused(Refused),
    Answer(std::result::Result<Reply, NoReply>),
    Recall(Recall),
    Undo,
    /// Ends the session of a context, unlocks its log and frees its memory.
    Close,
}

/// A line of a client: a request, and the name of the context that it is about.
pub struct Line<'l> {
    /// The name of the context; `None` if the line names none.
    pub context: Option<String>,
    pub request: Request<'l>,
}

/// The names of all operations, for error messages.
const OPS: &str = "hello, reset, open, call, push, step, view, force, usage, compact, refused, \
                   answer, recall, undo, close";
/// The maximum number of bytes in the name of a context.
const CONTEXT: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// Whether the client answers questions for summaries.
    pub summaries: Option<bool>,
}

/// The members of a request that begins a session.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Begin {
    pub session: Option<String>,
    pub window: Option<u64>,
    pub overhead: Option<u64>,
    pub summaries: Option<bool>,
    /// The window of the model that writes summaries, in tokens.
    pub writer_window: Option<u64>,
}

/// The members of a request that continues a session.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    pub log: Option<String>,
    pub session: Option<String>,
    pub window: Option<u64>,
    pub overhead: Option<u64>,
    pub summaries: Option<bool>,
    pub writer_window: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call<'l> {
    #[serde(default, borrow)]
    pub messages: Vec<&'l RawValue>,
    usage: Option<Billed>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Force<'l> {
    #[serde(default, borrow)]
    pub messages: Vec<&'l RawValue>,
    pub target_ratio: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compact {
    pub focus: Option<String>,
    /// The target in tokens. With a target, the context is compacted whatever its size.
    pub target: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    pub status: Option<u16>,
    #[serde(default)]
    pub body: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recall {
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// A text to search for: only lines that contain it are returned.
    pub search: Option<String>,
    /// The maximum number of lines that are returned.
    pub limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// The tokens that a provider counted for a request to a model and its response. In an `answer`,
/// the response is the answer to the question; in other requests of a client, it is the last
/// response among the messages.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Billed {
    input: u64,
    #[serde(default)]
    output: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    text: Option<String>,
    #[serde(default)]
    stopped: Stop,
    usage: Option<Billed>,
    failed: Option<String>,
    #[serde(default)]
    too_long: bool,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stop {
    #[default]
    End,
    Length,
    Call,
    Refused,
}

impl<'l> Line<'l> {
    pub fn parse(line: &'l [u8]) -> Result<Line<'l>> {
        // Some shells write a byte order mark before their output.
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let Members(mut said) = serde_json::from_slice(line)
            .map_err(|err| usage(format!("this is no request: {err}")))?;
        let at = said.iter().position(|(key, _)| *key == "op");
        let op = at.map(|at| said.remove(at).1.get());
        let op: String = op
            .and_then(|op| serde_json::from_str(op).ok())
            .ok_or_else(|| usage(format!("`op` says what is asked: {OPS}")))?;
        // The member `k` is ignored: clients may number requests with it. Answers are returned in
        // the order of the requests.
        said.retain(|(key, _)| *key != "k");
        let context = said.iter().find(|(key, _)| *key == "context");
        let context = context.map(|(_, name)| context_name(name)).transpose()?;
        said.retain(|(key, _)| *key != "context");
        let request = Request::parse(&op, said)?;
        Ok(Line { context, request })
    }
}

/// The name of a context.
fn context_name(name: &RawValue) -> Result<String> {
    match serde_json::from_str::<String>(name.get()) {
        Ok(name) if (1..=CONTEXT).contains(&name.len()) => Ok(name),
        Ok(_) | Err(_) => Err(usage(format!("a `context` is a name of 1 to {CONTEXT} bytes"))),
    }
}

impl<'l> Request<'l> {
    /// Parses a request with the operation `op` from its other members.
    fn parse(op: &str, said: Vec<Member<'l>>) -> Result<Request<'l>> {
        let asked = match op {
            "hello" => Request::Hello(members(op, said)?),
            "reset" => Request::Reset(members::<Begin>(op, said)?.checked()?),
            "open" => Request::Open(members::<Open>(op, said)?),
            "call" => Request::Call(members(op, said)?),
            "push" => Request::Push(members(op, said)?),
            "step" => Request::Step(members(op, said)?),
            // A missing list is an error and is not read as an empty one, which would remove all
            // messages.
            "view" if said.iter().all(|(key, _)| *key != "messages") => {
                return Err(usage("`messages` of `view` is the whole list; it is missing"));
            }
            "view" => Request::View(members(op, said)?),
            "force" => Request::Force(members::<Force>(op, said)?.checked()?),
            "usage" => members::<Nothing>(op, said).map(|_| Request::Usage)?,
            "compact" => Request::Compact(members::<Compact>(op, said)?.checked()?),
            "refused" => Request::Refused(members(op, said)?),
            "answer" => Request::Answer(members::<Answer>(op, said)?.reply()?),
            "recall" => Request::Recall(members(op, said)?),
            "undo" => members::<Nothing>(op, said).map(|_| Request::Undo)?,
            "close" => members::<Nothing>(op, said).map(|_| Request::Close)?,
            other => {
                let other = epitome_model::short(other, 40);
                return Err(usage(format!("there is no op `{other}`: {OPS}")));
            }
        };
        Ok(asked)
    }
}

impl Begin {
    fn checked(self) -> Result<Begin> {
        for (what, tokens) in [("window", self.window), ("writer_window", self.writer_window)] {
            window(what, tokens)?;
        }
        Ok(self)
    }
}

impl Open {
    /// The request to begin the session with the name `session`, with the sizes that this request
    /// states.
    pub fn begin(self, session: String) -> Result<Begin> {
        let Open { window, overhead, summaries, writer_window, .. } = self;
        let session = Some(session);
        Begin { session, window, overhead, summaries, writer_window }.checked()
    }
}

impl Call<'_> {
    pub fn billed(&self) -> Result<Option<Tokens>> {
        self.usage.map(Billed::sum).transpose()
    }
}

impl Compact {
    fn checked(self) -> Result<Compact> {
        match self.target {
            Some(tokens) if tokens > MOST => {
                Err(usage(format!("a `target` of more tokens than there are: {tokens}")))
            }
            Some(_) | None => Ok(self),
        }
    }
}

impl Force<'_> {
    fn checked(self) -> Result<Self> {
        match self.target_ratio {
            Some(ratio) if !(0.0..=1.0).contains(&ratio) => {
                Err(usage(format!("a `target_ratio` of {ratio}: it is from 0 to 1")))
            }
            Some(_) | None => Ok(self),
        }
    }
}

impl Billed {
    fn sum(self) -> Result<Tokens> {
        match self.input.checked_add(self.output) {
            Some(sum) if sum <= MOST => Ok(Tokens(sum)),
            Some(_) | None => Err(usage("a `usage` of more tokens than there are")),
        }
    }
}

impl Answer {
    /// The answer of a model that the client passes on, or the reason why there is none.
    fn reply(self) -> Result<std::result::Result<Reply, NoReply>> {
        let Answer { text, stopped, usage, failed, too_long } = self;
        let text = match (text, failed, too_long) {
            (Some(text), None, false) => text,
            (None, Some(reason), false) => return Ok(Err(NoReply::Failed(reason))),
            (None, None, true) => return Ok(Err(NoReply::TooLong)),
            _ => {
                let what = "an `answer` has either `text`, `failed` or `too_long`";
                return Err(self::usage(what));
            }
        };
        let stopped = match stopped {
            Stop::End => StopReason::End,
            Stop::Length => StopReason::Length,
            Stop::Call => StopReason::Call,
            Stop::Refused => StopReason::Refused,
        };
        if let Some(usage) = usage {
            usage.sum()?;
        }
        let used = usage.map(|Billed { input, output }| TokenUsage {
            input: Tokens(input),
            output: Tokens(output),
            ..TokenUsage::default()
        });
        Ok(Ok(Reply { text, stopped, used }))
    }
}

/// Checks a window, if one is given: it must be at least 1 token and at most `MOST`.
pub fn window(what: &str, tokens: Option<u64>) -> Result<()> {
    match tokens {
        Some(0) => Err(usage(format!("a `{what}` of 0 tokens holds nothing"))),
        Some(tokens) if tokens > MOST => {
            Err(usage(format!("a `{what}` of more tokens than there are: {tokens}")))
        }
        Some(_) | None => Ok(()),
    }
}

fn members<'a, T: Deserialize<'a>>(op: &str, said: Vec<Member<'a>>) -> Result<T> {
    from_members(said).map_err(|what| usage(format!("`{op}`: {what}")))
}

/// The error for a request that cannot be carried out as it is written.
pub fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, message)
}
