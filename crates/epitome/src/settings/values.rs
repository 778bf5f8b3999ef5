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
    /// Contexts in use, as in `epitome engine`.
    pub live: Live,
    /// Redaction of what leaves this machine.
    pub redaction: Redaction,
    /// How `epitome render` shows sessions.
    pub render: Render,
    /// The agent: `epitome chat`.
    pub chat: Chat,
    /// Projects whose settings files are trusted.
    pub trust: Trust,
    /// The archive of removed bytes.
    pub archive: Archive,
    /// What `epitome keep` keeps, and for how long.
    pub keep: Retention,
    /// Sessions for a team.
    pub share: Share,
}

/// What `epitome keep` keeps, and for how long. Without a rule, everything is kept forever.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// For how many days a version is kept after another one has taken its place. The newest
    /// version of a session stays.
    #[schemars(range(min = 1), extend("x-yours" = true))]
    pub days: Option<u64>,
    /// The size on disk, in bytes, above which the oldest versions are removed. The newest version
    /// of a session stays.
    #[schemars(extend("x-yours" = true))]
    pub size: Option<u64>,
    /// The only projects whose sessions are kept: folders, and all below them. `*` stands for any
    /// characters but `/`, `**` for any.
    #[schemars(extend("x-path" = "folders", "x-yours" = true))]
    pub projects: Option<Vec<PathBuf>>,
    /// Projects whose sessions are not kept.
    #[schemars(extend("x-path" = "folders", "x-yours" = true))]
    pub not_projects: Option<Vec<PathBuf>>,
}

/// The archive of removed bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Archive {
    /// Where encrypted copies of the archive's packs are stored, for other machines:
    /// `s3://bucket/folder`, `gs://…`, `az://…` or `file:///folder`.
    #[schemars(extend("x-yours" = true))]
    pub url: Option<String>,
}

/// Sessions for a team.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Share {
    /// Where redacted sessions are stored for a team, not encrypted: `s3://bucket/folder`,
    /// `gs://…`, `az://…` or `file:///folder`.
    #[schemars(extend("x-yours" = true))]
    pub url: Option<String>,
}

/// What is compacted, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Compaction {
    /// A recipe by name, or the path of a file.
    #[schemars(extend("default" = "epitome", "x-path" = "recipe"))]
    pub recipe: Option<String>,
    /// The size at which a compaction stops: a number of tokens, a percentage of the window
    /// (`"60%"`), a number of characters (`"80000 chars"`), or a table of `tokens`, `percent` and
    /// `chars`, all of which must be reached.
    #[schemars(with = "TargetTaken", extend("x-takes" = TARGET_TAKEN))]
    pub target: Option<Target>,
    /// What is kept whole. These rules replace those of the recipe.
    pub keep: Keep,
    /// What starts a compaction.
    pub trigger: Trigger,
    /// Whether old reasoning of the model is kept or removed. Overrides the recipe.
    pub thinking: Option<ThinkingMode>,
    /// Texts of at most this many bytes are not shortened.
    pub min_bytes: Option<u64>,
    /// Results of at most this many bytes are not shortened.
    pub min_result_bytes: Option<u64>,
    /// Contents of written files of at most this many bytes stay in their calls.
    pub min_content_bytes: Option<u64>,
    /// Tools whose calls and results are never shortened, in addition to those of the recipe.
    pub exempt_tools: Option<Vec<String>>,
    /// The minimum number of tokens that a compaction must save. If it would save fewer, nothing is
    /// changed.
    pub clear_at_least: Option<u64>,
    /// Whether the arguments of a call are removed together with its result: true for all tools, or
    /// a list of tools.
    pub clear_tool_inputs: Option<Inputs>,
    /// Whether text in a call or a result is removed if the model's next reply repeats it.
    pub repeats: Option<bool>,
    /// Where a copy of the whole session is kept before it is compacted: in the archive, or next to
    /// the session.
    pub backup: Option<BackupPlace>,
    /// The model that writes summaries.
    #[schemars(extend("x-yours" = true))]
    pub model: Option<String>,
    /// The model that is called if `compaction.model` fails.
    #[schemars(extend("x-yours" = true))]
    pub fallback: Option<String>,
    /// The time limit for a complete response of a model, in seconds.
    #[schemars(range(min = 1, max = 3600), extend("default" = 300))]
    pub timeout: Option<u64>,
    /// The number of attempts with a model before the fallback model is called.
    #[schemars(range(min = 1, max = 10), extend("default" = 3))]
    pub tries: Option<u32>,
}

/// What [`Compaction::target`] takes.
const TARGET_TAKEN: &str = "a whole number of tokens, a percentage from \"1%\" to \"100%\", a \
    number of characters (\"80000 chars\"), or a table of tokens, percent and chars";

/// [`Target`], for the schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its shape is used")]
enum TargetTaken {
    /// Tokens.
    Tokens(u64),
    /// A percentage of the window (`"60%"`), or a number of characters (`"80000 chars"`).
    Text(#[schemars(regex(pattern = "^(0*([1-9][0-9]?|100) *%|[0-9]+ *chars)$"))] String),
    /// A table of limits, all of which must be reached.
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
    /// Names of rule files (such as `AGENTS.md`) that are kept, in addition to those of agents and
    /// of the recipe.
    pub pins: Option<Vec<String>>,
}

/// The size at which a stored session is compacted, and a context in use if its recipe has no
/// trigger. If both are set, both must be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trigger {
    /// The tokens of the context.
    pub tokens: Option<u64>,
    /// The size of the session on disk, in bytes.
    pub bytes: Option<u64>,
}

/// Whose arguments go with their results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Inputs {
    /// True: the arguments of all calls. False: none.
    All(bool),
    /// The arguments of calls of these tools.
    Of(Vec<String>),
}

/// Contexts in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Live {
    /// The recipe for contexts in use, by name or path. If it is not set, `compaction.recipe` is
    /// used.
    #[schemars(extend("x-path" = "recipe"))]
    pub recipe: Option<String>,
    /// Whether contexts are compacted automatically, and not only on request.
    #[schemars(extend("default" = true))]
    pub auto: Option<bool>,
    /// The context window of the model, in tokens.
    #[schemars(range(min = 1, max = 1_000_000_000), extend("default" = 200_000))]
    pub window: Option<u64>,
    /// The tokens of the system prompt and the tools in each request.
    #[schemars(range(max = 1_000_000_000), extend("default" = 0))]
    pub overhead: Option<u64>,
    /// The size at which a context is compacted: the first of these limits that is reached.
    /// Overrides the recipe.
    pub trigger: Level,
    /// The size to which a context is compacted.
    pub target: Target,
    /// The tokens of the window that are reserved for the response.
    #[schemars(range(max = 1_000_000_000))]
    pub reserve: Option<u64>,
    /// The percentage of the window at which a warning is reported.
    #[schemars(range(min = 1, max = 100))]
    pub warn: Option<u64>,
    /// The summary, for recipes that have one.
    pub summary: Summary,
}

/// The summary: when it is written, what it contains, and in which role it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Summary {
    /// A summary is requested if the context is still larger than this after the passes.
    pub over: Level,
    /// The maximum number of tokens of the text that the model writes for a summary.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub max_tokens: Option<u64>,
    /// The sections of a summary: the name of a set of sections, or a list of headings.
    #[schemars(with = "SectionsTaken")]
    pub sections: Option<Sections>,
    /// The role of the message with the summary.
    #[schemars(with = "String", extend("enum" = ["user", "acknowledged", "system"]))]
    pub role: Option<SummaryRole>,
    /// The number of tokens of the user's messages that a summary quotes unchanged, the newest
    /// messages first.
    #[schemars(range(max = 1_000_000_000))]
    pub user_tokens: Option<u64>,
    /// What every summary pays attention to.
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
    /// Whether `render` and `export` redact sessions.
    #[schemars(extend("default" = true, "x-yours" = true))]
    pub enabled: Option<bool>,
    /// What is redacted: `secrets`, `pii` (personal data), or rules by name.
    #[schemars(extend("default" = ["secrets", "pii"], "x-yours" = true))]
    pub find: Option<Vec<String>>,
    /// Files with additional rules, in the format of gitleaks.
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
    /// How much of a session is shown.
    pub detail: Option<Detail>,
    /// Whether results and bulky arguments are replaced by their number of lines.
    #[schemars(extend("default" = "no"))]
    pub compact: Option<RenderShortening>,
    /// The folder to which pages are written.
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

/// How much of a session is shown.
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
    /// The model that answers, as PROVIDER/MODEL. If it is not set, `compaction.model` is used.
    #[schemars(extend("x-yours" = true))]
    pub model: Option<String>,
    /// Rules for what tools may do without asking the user.
    #[schemars(extend("x-yours" = true))]
    pub allow: Option<Vec<String>>,
    /// Rules for what tools must not do. They override `chat.allow`.
    #[schemars(extend("x-yours" = true))]
    pub deny: Option<Vec<String>>,
    /// MCP servers by name. The agent can call their tools.
    #[schemars(extend("x-yours" = true))]
    pub mcp: Option<BTreeMap<String, McpServer>>,
}

/// An MCP server: a program that is started, or an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpServer {
    /// The program.
    pub command: Option<String>,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// Additional environment variables of the program; `${NAME}` is replaced by a variable of the
    /// environment.
    pub env: BTreeMap<String, String>,
    /// The folder in which the program is started: an absolute path, or one relative to the
    /// project. By default your home folder.
    pub cwd: Option<String>,
    /// The address of a server that is not started as a program.
    pub url: Option<String>,
    /// Headers that are sent with each request; `${NAME}` is replaced by a variable of the
    /// environment.
    pub headers: BTreeMap<String, String>,
    /// The time limit of a call, in seconds.
    pub timeout: Option<u64>,
}

/// Projects whose settings files are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trust {
    /// Folders of projects whose settings files may set everything. Folders below them are
    /// included.
    #[schemars(extend("x-path" = "file", "x-yours" = true))]
    pub projects: Option<Vec<PathBuf>>,
}

/// The values that a type of settings accepts, each with its description. Command line options that
/// take the same values use them.
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
    let mut schema = schema_of::<Values>("epitome.toml");
    let keep = schema.pointer_mut("/properties/compaction/properties/keep/properties");
    if let Some(keep) = keep.and_then(Value::as_object_mut) {
        // Only recipes can set these keys.
        keep.retain(|key, _| !["share", "unanswered"].contains(&key.as_str()));
    }
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

/// The JSON Schema of a TOML file with these values.
pub(crate) fn schema_of<T: JsonSchema>(title: &str) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|it| it.inline_subschemas = true);
    let mut schema = Value::from(settings.into_generator().into_root_schema_for::<T>());
    tidied(&mut schema);
    schema["title"] = title.into();
    schema
}

/// Removes what is meaningless in TOML from the schema: the type `null`, and defaults that are
/// `null` or a table. Adds the names of recipes, which editors can offer.
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
    let kinds = object.get_mut("oneOf").and_then(Value::as_array_mut);
    kinds.into_iter().flatten().for_each(tidied);
    object.get_mut("items").into_iter().for_each(tidied);
}
