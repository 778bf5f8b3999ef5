//! The command lines of chitragupt's README and documents (<https://github.com/sonnes/chitragupt>),
//! with `epitome` for `cg`, word for word and for every agent.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::world::World;

/// Command lines; `SESSION` is a session's file and `ID` its id, both of `AGENT`.
const RENDER: &[&str] = &[
    "render --agent AGENT --file SESSION",
    "render --agent AGENT --session ID",
    "render --agent AGENT --project project",
    "render --agent AGENT --project .",
    "render --agent AGENT --all",
    "render --agent AGENT --project project --format html --out .transcripts",
    "render --agent AGENT --all --format html --out transcripts",
    "render --agent AGENT --file SESSION --format terminal",
    "render --agent AGENT --file SESSION --format html",
    "render --agent AGENT --file SESSION --format markdown",
    "render --agent AGENT --file SESSION --format json",
    "render --agent AGENT --file SESSION --format html --out transcripts",
    "render --agent AGENT --session ID --out-dir ./transcript --format html",
    "render --agent AGENT --file SESSION --no-redact",
    "render --agent AGENT --file SESSION --redact secrets",
    "render --agent AGENT --file SESSION --redact pii",
    "render --agent AGENT --file SESSION --redact=secrets",
    "render --agent AGENT --file SESSION --redact=secrets,pii",
    "render --agent AGENT --file SESSION --compact",
    "render --agent AGENT --file SESSION --compact=no-thinking",
    "render --agent AGENT --compact no-thinking --file SESSION",
    "render --agent AGENT -c no-thinking --file SESSION",
    "render --agent AGENT --fmt jsonl --file SESSION",
    "render -a AGENT -f SESSION -c --fmt html --fmt markdown -o transcripts -r secrets",
    "index --dir transcripts",
    "manifest upsert --agent AGENT --file SESSION --manifest .transcripts/manifest.json \
     --href ID/index.html",
    "index -d .transcripts",
    "manifest repair --dir .transcripts --agent AGENT",
    "manifest repair --dir .transcripts/ --agent AGENT",
];

/// For the agents that support hooks.
const KEEP: &[&str] = &[
    "install --agent AGENT --format html --yes",
    "install --agent AGENT --format html --branch gh-pages --yes",
    "install --agent AGENT --format html --out transcripts --yes",
    "install --agent AGENT --fmt jsonl --out transcripts --yes",
    // A branch can be checked out in one folder only.
    "uninstall --purge --yes",
    "install --agent AGENT --format html --out .transcripts --branch gh-pages --yes",
    "uninstall --yes",
    "uninstall --out .transcripts --yes",
    "uninstall --purge --yes",
];

/// Each prints its address and runs on.
const SERVE: &[&str] = &[
    "serve",
    "serve --project .",
    "serve --all",
    "serve --agent AGENT",
    "serve --agent AGENT --project project",
    "serve --agent AGENT --project .",
    "serve --agent AGENT --all",
    "serve --agent AGENT --dir transcripts",
    "serve --agent AGENT --port 0",
];

#[test]
fn sessions_of_every_agent_are_rendered_as_chitragupt_says() {
    for agent in ["claude", "codex", "pi", "opencode", "gemini", "cursor"] {
        let (world, session, id) = world_of(agent);
        // Cursor's sessions do not contain their folder.
        let lines = RENDER.iter().filter(|line| agent != "cursor" || !line.contains("--project"));
        for line in lines {
            // The path is replaced last, because it may contain the other placeholders.
            let line = line.replace("AGENT", agent).replace("ID", &id);
            run(&world, &line.replace("SESSION", &session));
            if line.starts_with("manifest upsert") {
                let manifest = world.home.join("project/.transcripts/manifest.json");
                let manifest = fs::read_to_string(manifest).expect("a manifest");
                assert!(manifest.contains(&format!("\"agent\": \"{agent}\"")), "{manifest}");
            }
        }
    }
}

#[test]
fn transcripts_of_every_agent_are_kept_as_chitragupt_says() {
    for agent in ["claude", "codex", "pi", "opencode", "gemini"] {
        let world = World::new();
        let project = world.home.join("project");
        fs::create_dir(&project).expect("a folder");
        let mut git = Command::new("git");
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env_remove("GIT_DIR");
        let git = git.arg("-C").arg(&project).args(["init", "-q"]).status();
        assert!(git.expect("git runs").success());
        for line in KEEP {
            run(&world, &line.replace("AGENT", agent));
        }
    }
}

#[test]
fn sessions_are_served_as_chitragupt_says() {
    let (world, ..) = world_of("claude");
    fs::create_dir_all(world.home.join("project/transcripts")).expect("a folder");
    for line in SERVE {
        let line = line.replace("AGENT", "claude");
        let mut command = command(&world, &line);
        let mut server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let server = server.as_mut().expect("the program runs");
        let mut first_line = String::new();
        let out = server.stdout.take().expect("it is piped");
        BufReader::new(out).read_line(&mut first_line).expect("text");
        server.kill().expect("it runs");
        server.wait().expect("it ends");
        assert!(first_line.starts_with("http://127.0.0.1:"), "{line}: {first_line}");
    }
}

/// A home with one session of an agent, run in the folder `project`; the session's address and id.
fn world_of(agent: &str) -> (World, String, String) {
    let world = World::new();
    let project = world.home.join("project");
    fs::create_dir(&project).expect("a folder");
    if agent == "cursor" {
        let database = world.cursor(&["composer"]);
        let id = world.json(&["list", "--agent", "cursor", "--json"])[0]["id"].clone();
        let id = id.as_str().expect("an id").to_owned();
        return (world, format!("{}#{id}", database.display()), id);
    }
    let recorded = fixtures::get(agent, "pricing").bytes();
    let text = String::from_utf8(recorded).expect("text");
    let text = text.replace("/home/dev", world.home.to_str().expect("text"));
    let file = match agent {
        "claude" => ".claude/projects/-p/ID.jsonl",
        "codex" => ".codex/sessions/2026/11/20/rollout-2026-11-20T23-12-03-ID.jsonl",
        "pi" => ".pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_ID.jsonl",
        // The path of Gemini CLI's sessions, without the name of a real machine.
        "gemini" => concat!(".gemini/", "tmp", "/project/chats/session-2026-11-20T23-12-ID.jsonl"),
        _ => ".local/share/opencode/opencode.db",
    };
    let id = id_of(&text);
    let short = if agent == "gemini" { &id[..8] } else { &id };
    let path = match agent {
        "opencode" => {
            let path = world.write(file, "");
            fs::remove_file(&path).expect("it is there");
            fixtures::stores::opencode(&path, text.as_bytes());
            format!("{}#{id}", path.display())
        }
        _ => world.write(&file.replace("ID", short), text).display().to_string(),
    };
    (world, path, id)
}

/// The first id in the records of a session.
fn id_of(text: &str) -> String {
    let records = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    let id = |record: serde_json::Value| {
        let places = [&record["sessionId"], &record["payload"]["id"], &record["id"]];
        places.into_iter().find_map(|it| it.as_str().map(str::to_owned))
    };
    records.into_iter().find_map(id).expect("a session has an id")
}

fn command(world: &World, line: &str) -> Command {
    let words: Vec<&str> = line.split(' ').collect();
    let mut command = world.command(&words);
    command.current_dir(world.home.join("project"));
    command
}

fn run(world: &World, line: &str) {
    let out = command(world, line).output().expect("the program runs");
    assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
}
