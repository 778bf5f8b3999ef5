//! The types of all settings. Their doc comments are the descriptions that users see in the schema
//! and in `epitome config --explain`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use epitome_passes::{
    self as passes, BUILT_IN, Level, Sections, SummaryRole, Target, ThinkingMode,
};
pub use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::foreign::FOREIGN;
use crate::backup::BackupPlace;

/// All that can be set in `epitome.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Values {
    /// What is compacted, and how: stored sessions, and contexts in use.
    pub compaction: Compaction,
    /// Contexts in use: `epitome engine`.
    pub live: Live,
    /// Redaction of what leaves this machine.
    pub redaction: Redaction,
    /// How `epitome render` shows sessions.
    pub render: Render,
    /// The agent: `epitome chat`.
    pub chat: Chat,
    /// Projects whose settings files are trusted.
    pub trust: Trust,
}

/// What is compacted, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Compaction {
    /// A recipe by name, or the path of a file.
    #[schemars(extend("default" = "epitome", "x-path" = "recipe"))]
    pub recipe: Option<String>,
    /// Where a compaction stops: at so many tokens of context, at per cent of the window (`"60%"`),
    /// at characters (`"80000 chars"`), or at a table of `tokens`, `percent` and `chars`, all of
    /// which have to be reached.
    #[schemars(with = "TargetTaken", extend("x-takes" = TARGET_TAKEN))]
    pub target: Option<Target>,
    /// What is kept whole. Any of these replaces what the recipe keeps.
    pub keep: Keep,
    /// What starts a compaction.
    pub trigger: Trigger,
    /// What is done with old reasoning, whatever the recipe says.
    pub thinking: Option<ThinkingMode>,
    /// Everything of at most so many bytes stays.
    pub min_bytes: Option<u64>,
    /// Results of at most so many bytes stay.
    pub min_result_bytes: Option<u64>,
    /// Contents of written files of at most so many bytes stay in their calls.
    pub min_content_bytes: Option<u64>,
    /// Tools whose calls and results stay, in addition to those of the recipe.
    pub exempt_tools: Option<Vec<String>>,
    /// Tokens that a compaction has to save; otherwise it is not made.
    pub clear_at_least: Option<u64>,
    /// Whether arguments go with their results: of all calls, or of those of these tools.
    pub clear_tool_inputs: Option<Inputs>,
    /// Whether texts that the reply repeats are kept once.
    pub repeats: Option<bool>,
    /// Keep a whole copy of a session before it is compacted, in the archive or next to it.
    pub backup: Option<BackupPlace>,
    /// The model that writes summaries.
    #[schemars(extend("x-yours" = true))]
    pub model: Option<String>,
    /// The model that is called when that one fails.
    #[schemars(extend("x-yours" = true))]
    pub fallback: Option<String>,
    /// The time limit for a whole answer of a model, in seconds.
    #[schemars(range(min = 1, max = 3600), extend("default" = 300))]
    pub timeout: Option<u64>,
    /// How often a model is called before the next one is tried.
    #[schemars(range(min = 1, max = 10), extend("default" = 3))]
    pub tries: Option<u32>,
}

/// What [`Compaction::target`] takes.
const TARGET_TAKEN: &str =
    "a whole number of tokens, per cent from 1% to 100%, or a table of tokens, percent and chars";

/// [`Target`], for the schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its shape is used")]
enum TargetTaken {
    /// Tokens.
    Tokens(u64),
    /// Per cent of the window, or characters.
    Text(#[schemars(regex(pattern = "^(0*([1-9][0-9]?|100) *%|[0-9]+ *chars)$"))] String),
    /// All of these.
    All(Target),
}

/// What is kept whole: the union of these, and names of rule files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct Keep {
    /// The rules.
    #[serde(flatten)]
    pub rules: passes::Keep,
    /// Names of files that set rules, in addition to those of agents and of the recipe.
    pub pins: Option<Vec<String>>,
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

/// Whose arguments go with their results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Inputs {
    /// Of all calls, or of none.
    All(bool),
    /// Of calls of these tools.
    Of(Vec<String>),
}

/// Contexts in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Live {
    /// A recipe for contexts in use alone, by name or path; without it, that of `compaction`.
    #[schemars(extend("x-path" = "recipe"))]
    pub recipe: Option<String>,
    /// Whether contexts are compacted by themselves, and not only on request.
    #[schemars(extend("default" = true))]
    pub auto: Option<bool>,
    /// The context window of the model, in tokens.
    #[schemars(range(min = 1, max = 1_000_000_000), extend("default" = 200_000))]
    pub window: Option<u64>,
    /// Tokens of every request in addition to the messages: prompt and tools.
    #[schemars(range(max = 1_000_000_000), extend("default" = 0))]
    pub overhead: Option<u64>,
    /// What starts a compaction: any of these. They replace what the recipe says.
    pub trigger: Level,
    /// How far a compaction goes: one of these.
    pub target: Target,
    /// Tokens of the window that are kept for the reply.
    #[schemars(range(max = 1_000_000_000))]
    pub reserve: Option<u64>,
    /// Per cent of the window at which there is a warning.
    #[schemars(range(min = 1, max = 100))]
    pub warn: Option<u64>,
    /// The summary, for recipes that have one.
    pub summary: Summary,
}

/// The summary: when it is written, what it contains, and in which role it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Summary {
    /// The size that the context must reach after the passes.
    pub over: Level,
    /// The most tokens of the model's part of it.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub max_tokens: Option<u64>,
    /// Its sections: the name of a set, or a list of headings.
    #[schemars(with = "SectionsTaken")]
    pub sections: Option<Sections>,
    /// The role in which it is sent.
    #[schemars(with = "String", extend("enum" = ["user", "acknowledged", "system"]))]
    pub role: Option<SummaryRole>,
    /// Tokens of the user's words that are kept word for word, the newest first.
    #[schemars(range(max = 1_000_000_000))]
    pub user_tokens: Option<u64>,
    /// What every summary should look at.
    #[schemars(extend("x-yours" = true))]
    pub focus: Option<String>,
    /// Texts that every summary contains unchanged.
    #[schemars(extend("x-yours" = true))]
    pub protected: Option<Vec<String>>,
}

/// [`Sections`], for the schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its shape is used")]
enum SectionsTaken {
    /// A set.
    #[schemars(extend("enum" = ["s06", "jcli", "s08", "pi", "ion", "jcli-9", "claude-code"]))]
    Set(String),
    /// Headings.
    Own(Vec<String>),
}

/// Redaction of what leaves this machine: `render`, `export`, `redact`, `scan`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Redaction {
    /// Whether `render` and `export` redact anything.
    #[schemars(extend("default" = true, "x-yours" = true))]
    pub enabled: Option<bool>,
    /// What is looked for: `secrets`, `pii`, or rules by name.
    #[schemars(extend("default" = ["secrets", "pii"], "x-yours" = true))]
    pub find: Option<Vec<String>>,
    /// Files of rules in addition to epitome's, in the form of gitleaks'.
    #[schemars(extend("x-path" = "file", "x-yours" = true))]
    pub rules: Option<Vec<PathBuf>>,
}

/// How `epitome render` shows sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Render {
    /// The output formats.
    #[schemars(extend("default" = ["terminal"]))]
    pub format: Option<Vec<Form>>,
    /// How much is shown.
    pub detail: Option<Detail>,
    /// Whether results and bulky arguments are replaced by their number of lines.
    #[schemars(extend("default" = "no"))]
    pub compact: Option<RenderShortening>,
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
    /// The session's own records.
    Jsonl,
}

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// Everything, including messages that the agent itself sent to the model.
    Full,
    /// Messages and actions; of long texts the beginning and the end.
    Steps,
    /// Messages, and a line for each call.
    Calls,
    /// The messages between the user and the agent.
    Conversation,
}

impl From<Detail> for epitome_render::Detail {
    fn from(detail: Detail) -> epitome_render::Detail {
        match detail {
            Detail::Full => epitome_render::Detail::Full,
            Detail::Steps => epitome_render::Detail::Steps,
            Detail::Calls => epitome_render::Detail::Calls,
            Detail::Conversation => epitome_render::Detail::Conversation,
        }
    }
}

/// How a session is shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RenderShortening {
    /// Not at all.
    No,
    /// With reasoning.
    Yes,
    /// Without reasoning.
    NoThinking,
}

/// The agent. A rule is `write`, `shell: WORDS`, `mcp__SERVER` or `mcp__SERVER__TOOL`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Chat {
    /// The model that answers, as PROVIDER/MODEL. Without it that of `compaction.model`.
    #[schemars(extend("x-yours" = true))]
    pub model: Option<String>,
    /// Rules for what its tools may do without a question.
    #[schemars(extend("x-yours" = true))]
    pub allow: Option<Vec<String>>,
    /// Rules for what its tools may not do; they override every rule that allows.
    #[schemars(extend("x-yours" = true))]
    pub deny: Option<Vec<String>>,
    /// MCP servers by name, whose tools are further tools.
    #[schemars(extend("x-yours" = true))]
    pub mcp: Option<BTreeMap<String, McpServer>>,
}

/// An MCP server: a program that is started, or an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpServer {
    /// The program.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that it gets in addition; `${NAME}` is a variable of the environment.
    pub env: BTreeMap<String, String>,
    /// The folder in which it is started: absolute, or seen from the project. Without it, your home
    /// folder.
    pub cwd: Option<String>,
    /// The address, if it is no program.
    pub url: Option<String>,
    /// Headers that are sent with each request; `${NAME}` is a variable of the environment.
    pub headers: BTreeMap<String, String>,
    /// The time limit of a call, in seconds.
    pub timeout: Option<u64>,
}

/// Projects whose settings files are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trust {
    /// Folders of projects whose files may set everything, including folders below them.
    #[schemars(extend("x-path" = "file", "x-yours" = true))]
    pub projects: Option<Vec<PathBuf>>,
}

/// The words that a type of settings accepts, each with its description: for a command line option
/// with the same values.
pub fn accepted_values<T: JsonSchema>() -> Vec<(String, String)> {
    let schema = Value::from(schemars::schema_for!(T));
    let words = schema["oneOf"].as_array().into_iter().flatten();
    let words = words.map(|word| {
        let text = |key: &str| word[key].as_str().unwrap_or_default().to_owned();
        (text("const"), text("description"))
    });
    words.collect()
}

/// The JSON Schema of `epitome.toml`, including the tables with other programs' names.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|it| it.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<Values>();
    let mut schema = Value::from(schema);
    tidied(&mut schema);
    schema["title"] = "epitome.toml".into();
    let tables = FOREIGN.iter().map(|foreign| (foreign.table.clone(), foreign.schema(&schema)));
    let tables: Vec<(String, Value)> = tables.collect();
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.extend(tables);
        let about = "Where editors find this schema.";
        let address = json!({ "type": "string", "description": about });
        properties.insert("$schema".to_owned(), address);
    }
    schema
}

/// Removes what is meaningless in TOML from the schema: there is no `null`, and an unset value is
/// no default. Adds the names of recipes, which editors can offer.
fn tidied(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    if object.get("default").is_some_and(|it| it.is_null() || it.is_object()) {
        object.remove("default");
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|it| it != "null");
        if let [one] = &types[..] {
            let one = one.clone();
            object.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(list)) = object.get_mut("enum") {
        list.retain(|it| !it.is_null());
    }
    if let Some(Value::Array(any)) = object.get_mut("anyOf") {
        any.retain(|it| it["type"] != "null");
        any.iter_mut().for_each(tidied);
        if let [one] = &mut any[..] {
            let one = one.take();
            object.remove("anyOf");
            for (name, value) in one.as_object().into_iter().flatten() {
                object.entry(name).or_insert_with(|| value.clone());
            }
        }
    }
    if object.get("x-path").is_some_and(|it| it == "recipe") {
        let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        object.insert("anyOf".to_owned(), json!([{ "enum": names }, { "minLength": 1 }]));
    }
    let properties = object.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flatten().for_each(|(_, property)| tidied(property));
}
