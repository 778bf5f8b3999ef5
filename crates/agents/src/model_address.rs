//! How an agent is started with another base URL for its model: by a variable, an option or a file
//! that exists only for that run. No settings change.

/// How an agent is started with another base URL.
#[derive(Clone, Copy, Debug)]
pub struct ModelAddress {
    /// The agent's program.
    pub program: &'static str,
    /// The variable in which a user may have set another base URL than the usual one.
    pub variable: Option<&'static str>,
    /// The path of the agent's usual base URL: empty, or beginning with a slash.
    pub path: &'static str,
    /// Returns the variables, arguments and file with which a run uses the base URL `url`.
    pub launch: fn(url: &str) -> Launch,
    /// How the run is given an MCP server. `None` if no option for that is known.
    pub mcp: Option<McpArguments>,
    /// Changes the variables, arguments or file of a run so that the agent does not compact by
    /// itself. `None` if no such change is known. The user can still request a compaction.
    pub hold_compaction: Option<fn(&mut Launch)>,
}

/// Returns the arguments with which a run gets an MCP server. `command` is the command line of the
/// server: a program and its arguments.
pub type McpArguments = fn(command: &[&str]) -> Vec<String>;

/// The variables, arguments and file that a run of an agent gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Variables of the agent's environment.
    pub variables: Vec<(&'static str, String)>,
    /// Variables that are set unless the user has set them.
    pub defaults: Vec<(&'static str, &'static str)>,
    /// Command-line arguments. They are inserted before the arguments of the user.
    pub arguments: Vec<String>,
    /// A file that exists during the run. Its `option` passes the path of the file to the agent.
    pub file: Option<LaunchFile>,
}

impl Launch {
    /// The names of the variables and options that the run is given. The arguments have one name:
    /// all of them up to the first `=`.
    pub fn setting_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        names.extend(self.variables.iter().map(|(name, _)| (*name).to_owned()));
        names.extend(self.defaults.iter().map(|(name, _)| (*name).to_owned()));
        if !self.arguments.is_empty() {
            let line = self.arguments.join(" ");
            names.push(line.split('=').next().unwrap_or(&line).to_owned());
        }
        names.extend(self.file.iter().map(|file| file.option.to_owned()));
        names
    }
}

/// A file that exists during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchFile {
    /// The option that takes the path of the file.
    pub option: &'static str,
    /// The end of the file's name.
    pub suffix: &'static str,
    /// The content of the file.
    pub text: String,
}

/// Claude Code. With another base URL, Claude Code sends the descriptions of all tools in each
/// request, unless a variable says that the service supports loading them later.
pub(crate) const CLAUDE: ModelAddress = ModelAddress {
    program: "claude",
    variable: Some("ANTHROPIC_BASE_URL"),
    path: "",
    launch: |url| Launch {
        variables: vec![("ANTHROPIC_BASE_URL", url.to_owned())],
        defaults: vec![("ENABLE_TOOL_SEARCH", "true")],
        ..Launch::default()
    },
    // With a space in place of `=`, Claude Code would take the next arguments for more values.
    mcp: Some(|command| {
        let (program, arguments) = (quoted(command[0]), quoted_list(&command[1..]));
        let server = format!(r#"{{"command":{program},"args":[{arguments}]}}"#);
        vec![format!(r#"--mcp-config={{"mcpServers":{{"epitome":{server}}}}}"#)]
    }),
    hold_compaction: Some(|launch| {
        launch.variables.push(("DISABLE_AUTO_COMPACT", "1".to_owned()));
    }),
};

/// A text as a string literal of both JSON and TOML. The text must not have control characters.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Texts as the elements of an array of both JSON and TOML.
fn quoted_list(texts: &[&str]) -> String {
    texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(",")
}

/// Codex. An option sets the base URL of its built-in provider, OpenAI.
pub(crate) const CODEX: ModelAddress = ModelAddress {
    program: "codex",
    variable: None,
    path: "/v1",
    launch: |url| Launch {
        arguments: vec!["-c".into(), format!("openai_base_url={url:?}")],
        ..Launch::default()
    },
    mcp: Some(|command| {
        let (program, arguments) = (quoted(command[0]), quoted_list(&command[1..]));
        let server = format!("{{command={program},args=[{arguments}]}}");
        vec!["-c".into(), format!("mcp_servers.epitome={server}")]
    }),
    hold_compaction: Some(|launch| {
        let limit = format!("model_auto_compact_token_limit={NEVER}");
        launch.arguments.extend(["-c".to_owned(), limit]);
    }),
};

/// Gemini CLI with an API key. With a Google account it uses another service.
pub(crate) const GEMINI: ModelAddress = ModelAddress {
    program: "gemini",
    variable: Some("GOOGLE_GEMINI_BASE_URL"),
    path: "",
    launch: |url| Launch {
        variables: vec![("GOOGLE_GEMINI_BASE_URL", url.to_owned())],
        ..Launch::default()
    },
    mcp: None,
    hold_compaction: None,
};

/// Qwen Code.
pub(crate) const QWEN: ModelAddress = ModelAddress {
    program: "qwen",
    variable: Some("OPENAI_BASE_URL"),
    path: "/v1",
    launch: |url| Launch {
        variables: vec![("OPENAI_BASE_URL", url.to_owned())],
        ..Launch::default()
    },
    mcp: None,
    hold_compaction: None,
};

/// OpenCode: the base URLs of Anthropic, OpenAI, and Google are settings in a variable.
pub(crate) const OPENCODE: ModelAddress = ModelAddress {
    program: "opencode",
    variable: None,
    path: "",
    launch: |url| {
        let providers = [("anthropic", "/v1"), ("openai", "/v1"), ("google", "/v1beta")];
        let provider =
            |(name, path)| format!(r#""{name}":{{"options":{{"baseURL":"{url}{path}"}}}}"#);
        let providers: Vec<String> = providers.map(provider).to_vec();
        let settings = format!(r#"{{"provider":{{{}}}}}"#, providers.join(","));
        Launch { variables: vec![("OPENCODE_CONFIG_CONTENT", settings)], ..Launch::default() }
    },
    mcp: None,
    hold_compaction: Some(|launch| {
        launch.variables.push(("OPENCODE_DISABLE_AUTOCOMPACT", "1".to_owned()));
    }),
};

/// pi: an extension sets the base URLs of Anthropic, OpenAI, and Google.
pub(crate) const PI: ModelAddress = ModelAddress {
    program: "pi",
    variable: None,
    path: "",
    launch: |url| {
        let providers = [("anthropic", ""), ("openai", "/v1"), ("google", "/v1beta")];
        let register = |(name, path)| {
            format!("  pi.registerProvider(\"{name}\", {{ baseUrl: url + \"{path}\" }});\n")
        };
        let text = providers.map(register).concat();
        // The text does not contain the address: Node.js keeps what it compiled, so that an address
        // in the text would stay on the disk after the run.
        let text = format!(
            "export default function (pi) {{\n  const url = process.env.{PI_URL};\n{text}}}\n"
        );
        let file = LaunchFile { option: "--extension", suffix: ".js", text };
        let variables = vec![(PI_URL, url.to_owned())];
        Launch { variables, file: Some(file), ..Launch::default() }
    },
    mcp: None,
    hold_compaction: Some(|launch| {
        if let Some(file) = &mut launch.file {
            file.text.insert_str(file.text.len() - "}\n".len(), PI_HOLD);
        }
    }),
};

/// The variable in which the extension finds the base URL.
const PI_URL: &str = "EPITOME_PROXY";
/// The part of the extension that cancels the compactions that pi begins because its context is
/// long. pi still compacts after a request that was too long for the model.
const PI_HOLD: &str = r#"  pi.on("session_before_compact", (event) =>
    event.reason === "threshold" ? { cancel: true } : undefined);
"#;
/// A number of tokens that no context has.
const NEVER: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_is_given_the_address_in_its_own_way() {
        let mut written = String::new();
        for address in [CLAUDE, CODEX, GEMINI, QWEN, OPENCODE, PI] {
            let launch = (address.launch)("http://127.0.0.1:4000");
            let mut held = launch.clone();
            let holds = address.hold_compaction.map(|hold| hold(&mut held)).is_some();
            let names = launch.setting_names().join(", ");
            written.push_str(&format!("{}: {names}\n{launch:#?}\n", address.program));
            let command = ["C:\\bin\\epitome", "mcp", "--home", "a \"b\""];
            written.push_str(&format!("{:#?}\n", address.mcp.map(|mcp| mcp(&command))));
            if holds {
                written.push_str(&format!("held: {held:#?}\n"));
            }
        }
        insta::assert_snapshot!(written);
    }
}
