//! What can be set: the names, what they take, and what stands where nobody set anything.

use std::path::PathBuf;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All that can be set in `epitome.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Values {
    /// What is made small, and how: of stored sessions and of contexts in use.
    pub compaction: Compaction,
    /// Contexts in use: `epitome engine`.
    pub live: Live,
    /// What is taken out of what leaves this machine.
    pub redaction: Redaction,
    /// How `epitome render` shows sessions.
    pub render: Render,
    /// Whose files are believed.
    pub trust: Trust,
}

/// What is made small, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Compaction {
    /// A recipe by name, or the path of a file.
    #[schemars(extend("default" = "epitome", "x-path" = "recipe"))]
    pub recipe: Option<String>,
    /// Tokens of context at which a compaction stops.
    pub target: Option<u64>,
    /// What is kept whole. Any of these replaces what the recipe keeps.
    pub keep: Keep,
    /// What starts a compaction.
    pub trigger: Trigger,
    /// What is done with old reasoning, whatever the recipe says.
    pub thinking: Option<Thinking>,
    /// Everything of at most so many bytes stays.
    pub min_bytes: Option<u64>,
    /// Results of at most so many bytes stay.
    pub min_result_bytes: Option<u64>,
    /// Contents of written files of at most so many bytes stay in their calls.
    pub min_content_bytes: Option<u64>,
    /// Tools whose calls and results stay, beside those of the recipe.
    pub exempt_tools: Option<Vec<String>>,
    /// Tokens that a compaction has to save; else it is left.
    pub clear_at_least: Option<u64>,
    /// Whether arguments go with their results: of all calls, or of those of these tools.
    pub clear_tool_inputs: Option<Inputs>,
    /// Whether texts that the reply repeats are kept once.
    pub repeats: Option<bool>,
    /// Keep a whole copy of a session before it is compacted, in the archive or beside it.
    pub backup: Option<Backup>,
    /// The model that writes summaries.
    #[schemars(extend("x-yours" = true))]
    pub model: Option<String>,
    /// The model that is asked when that one fails.
    #[schemars(extend("x-yours" = true))]
    pub fallback: Option<String>,
}

/// What is kept whole: the union of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Keep {
    /// The last turns.
    pub turns: Option<u64>,
    /// The last results.
    pub results: Option<u64>,
    /// The last messages.
    pub messages: Option<u64>,
    /// The last tokens.
    pub tokens: Option<u64>,
}

/// What starts a compaction of a stored session, and of a context in use whose recipe says nothing
/// else; both have to be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trigger {
    /// Tokens of context.
    pub tokens: Option<u64>,
    /// Bytes on disk.
    pub bytes: Option<u64>,
}

/// What is done with old reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Thinking {
    /// It stays.
    Keep,
    /// It goes, whole.
    Drop,
}

/// Whose arguments go with their results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Inputs {
    /// Of all calls, or of none.
    All(bool),
    /// Of calls of these tools.
    Of(Vec<String>),
}

/// Where a whole copy is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backup {
    /// In the folder of the archive.
    Archive,
    /// Beside the session: most agents list it there as a session.
    Beside,
}

/// Contexts in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Live {
    /// A recipe for contexts in use alone, by name or path; without it, that of `compaction`.
    #[schemars(extend("x-path" = "recipe"))]
    pub recipe: Option<String>,
    /// Whether anything is compacted before somebody asks.
    #[schemars(extend("default" = true))]
    pub auto: Option<bool>,
    /// Tokens that the model takes.
    #[schemars(extend("default" = 200_000))]
    pub window: Option<u64>,
    /// Tokens that every request has beside the messages: prompt and tools.
    #[schemars(extend("default" = 0))]
    pub overhead: Option<u64>,
    /// What starts a compaction: any of these. They replace what the recipe says.
    pub trigger: Level,
    /// What it should come to: one of these.
    pub target: Target,
    /// Tokens of the window that are kept for the reply.
    pub reserve: Option<u64>,
    /// Per cent of the window at which there is a warning.
    pub warn: Option<u64>,
    /// The summary, of recipes that have one.
    pub summary: Summary,
}

/// A size of a context: any of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Level {
    /// Tokens, prompt and tools included.
    pub tokens: Option<u64>,
    /// Per cent of the window without the reserve.
    pub percent: Option<u64>,
    /// Bytes of words.
    pub bytes: Option<u64>,
    /// Results.
    pub results: Option<u64>,
    /// Turns of the user.
    pub turns: Option<u64>,
    /// Messages.
    pub messages: Option<u64>,
}

/// What a compaction should come to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Target {
    /// Tokens, prompt and tools included.
    pub tokens: Option<u64>,
    /// Per cent of the window without the reserve.
    pub percent: Option<u64>,
}

/// When a summary is asked for, and how long it may be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Summary {
    /// What the context has to reach after the passes.
    pub over: Level,
    /// Tokens that it may have.
    pub max_tokens: Option<u64>,
}

/// What is taken out of what leaves this machine: `render`, `export`, `redact`, `scan`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Redaction {
    /// Whether `render` and `export` take anything out.
    #[schemars(extend("default" = true, "x-yours" = true))]
    pub enabled: Option<bool>,
    /// What is looked for: `secrets`, `pii`, or rules by name.
    #[schemars(extend("default" = ["secrets", "pii"], "x-yours" = true))]
    pub find: Option<Vec<String>>,
    /// Files of rules beside epitome's, in the form of gitleaks'.
    #[schemars(extend("x-path" = "file", "x-yours" = true))]
    pub rules: Option<Vec<PathBuf>>,
}

/// How `epitome render` shows sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Render {
    /// In which forms.
    #[schemars(extend("default" = ["terminal"]))]
    pub format: Option<Vec<Form>>,
    /// How much is told.
    pub detail: Option<Detail>,
    /// Whether results and bulky arguments are told as how many lines they had.
    #[schemars(extend("default" = "no"))]
    pub compact: Option<Compacted>,
    /// The folder that pages are written to.
    #[schemars(extend("x-path" = "file"))]
    pub out: Option<PathBuf>,
}

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Text in colours.
    Terminal,
    /// Pages.
    Html,
    /// For GitHub.
    Markdown,
    /// For programs.
    Json,
}

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// Everything.
    Full,
    /// What was said and done.
    Steps,
    /// What was said, and a line for each call.
    Calls,
    /// What the user and the agent said to each other.
    Conversation,
}

/// How a session is told small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compacted {
    /// Not at all.
    No,
    /// With reasoning.
    Yes,
    /// Without reasoning.
    NoThinking,
}

/// Whose files are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trust {
    /// Folders of projects whose files may set everything, with all that is below them.
    #[schemars(extend("x-path" = "file", "x-yours" = true))]
    pub projects: Option<Vec<PathBuf>>,
}

/// The JSON Schema of `epitome.toml`, tables of other programs' names included.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|it| it.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<Values>();
    let mut schema = Value::from(schema);
    without_empty_defaults(&mut schema);
    schema["title"] = "epitome.toml".into();
    let tables = super::foreign::FOREIGN.iter().map(|foreign| {
        let about = format!("The names of {}, as they stand there.", foreign.of);
        let names = foreign.names.iter().map(|name| {
            let about = serde_json::json!({ "description": name.told() });
            (name.name.to_owned(), about)
        });
        let names: serde_json::Map<String, Value> = names.collect();
        let table = serde_json::json!({
            "description": about,
            "type": "object",
            "additionalProperties": false,
            "properties": names,
        });
        (foreign.table.to_owned(), table)
    });
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.extend(tables);
        let about = "Where editors find this schema.";
        let address = serde_json::json!({ "type": "string", "description": about });
        properties.insert("$schema".to_owned(), address);
    }
    schema
}

/// That nothing is set says nothing.
fn without_empty_defaults(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    if object.get("default").is_some_and(|it| it.is_null() || it.is_object()) {
        object.remove("default");
    }
    for property in
        object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
    {
        without_empty_defaults(property.1);
    }
}
