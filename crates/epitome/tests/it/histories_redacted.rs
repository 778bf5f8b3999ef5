//! What was redacted before a compaction stays redacted after it, in every output.

use std::fs;
use std::path::{Path, PathBuf};

use epitome::compaction::Way;
use epitome::ops::{Compact, OpenSession, Restore};
use epitome::render::{RenderOptions, RenderSource};
use epitome::storage::Spliced;
use epitome::{Config, ErrorKind, History, Loaded, Version};
use epitome_formats::FORMATS;
use epitome_model::{Block, Output, Part, Source, Span, Splice, Text, encode};
use epitome_passes::{BUILT_IN, Keep, Recipe, built_in};
use epitome_redact::{Finder, Redactor, Rules};
use epitome_render::{Detail, Html, json, markdown, terminal};
use epitome_tokens::Estimate;

/// The secrets are split into pieces, so that scanners do not report them as real ones.
const PASSWORD: &str = concat!("hunter2", "-Secret_pw9X");
const WORD: &str = concat!("tr0ub4dor", "-and-3");
const KEY: &str = concat!("Zk3vQ8xW2mN7bL5t", "R1yP9sD4fG6hJ0kC");

/// The lines of a private key.
fn key_lines() -> Vec<String> {
    (0..6).map(|n| fixtures::planted::like("[A-Za-z0-9+/]{64}", n)).collect()
}

/// The text of an early result. It contains the secrets with the context by which rules recognise
/// them, between other lines.
fn explained(text: &str) -> String {
    let filler: String = (0..80).map(|n| format!("setting_{n} = value {n} of many\n")).collect();
    let pem = format!(
        "-----BEGIN {0}-----\n{1}\n-----END {0}-----",
        concat!("RSA PRIVATE", " KEY"),
        key_lines().join("\n")
    );
    format!(
        "{text}\n{filler}DATABASE_URL=postgres://admin:{PASSWORD}@db.test/x\nDB_PASSWORD={WORD}\n\
         {pem}\n{filler}api_key = \"{KEY}\"\n{filler}"
    )
}

/// A text of a later result or of the model. It contains the secrets, but not the context by which
/// rules recognise them.
fn bare(text: &str) -> String {
    format!("{text}\ntried {PASSWORD}, then {WORD} and {KEY}, all refused\n")
}

/// A recorded session with planted secrets: an early result has them with their context, later
/// texts without it. `None` if the session has too few results.
fn planted(bytes: &[u8]) -> Option<Vec<u8>> {
    let session = Loaded::read(bytes, None).ok()?;
    let texts = |entry: &epitome_model::Entry| -> Vec<Span> {
        let of_output = |output: &Output| {
            let parts = output.parts.iter().filter_map(|part| match part {
                Part::Text(text) => text.span(),
                Part::Image(_) | Part::Opaque(_) => None,
            });
            parts.collect::<Vec<_>>()
        };
        let blocks = entry.blocks.iter().flat_map(|block| match block {
            Block::Output(output) => of_output(output),
            _ => Vec::new(),
        });
        blocks.collect()
    };
    let mut spans: Vec<Span> =
        session.transcript.context().flat_map(|(_, entry)| texts(entry)).collect();
    spans.sort();
    spans.dedup();
    let is_literal = |span: &Span| session.source.at(*span).first() == Some(&b'"');
    spans.retain(is_literal);
    let (first, last) = (*spans.first()?, *spans.last()?);
    if first == last {
        return None;
    }
    let with = |span: Span, change: fn(&str) -> String| Splice {
        span,
        with: encode(&change(&Text::Source(span).read(&session.source))).into_bytes().into(),
    };
    let splices = vec![with(first, explained), with(last, bare)];
    let spliced = Spliced::new(&session.source, splices).ok()?;
    Some(spliced.read(0..Source::len(&spliced)).into_owned())
}

struct Case {
    _dir: tempfile::TempDir,
    config: Config,
    path: PathBuf,
}

impl Case {
    fn new(bytes: &[u8]) -> Case {
        let dir = tempfile::tempdir().expect("a folder");
        let user = dir.path().canonicalize().expect("a folder");
        let mut config = Config::from_home(&user);
        config.home = user.join("data");
        let path = user.join("session.jsonl");
        fs::write(&path, bytes).expect("a session");
        Case { _dir: dir, config, path }
    }

    fn history(&self, version: Version) -> History {
        History::open(&self.config, &self.path, None, version).expect("a session")
    }

    /// Every output that users can get from a session, with its name. The first is the copy.
    fn outputs(&self, version: Version) -> Vec<(&'static str, String)> {
        let mut outputs = vec![("copy", copy(&self.history(version)))];
        let (config, path) = (&self.config, &self.path);
        let reading = RenderSource::open_version(config, path, None, version).expect("a session");
        let how = RenderOptions {
            detail: Detail::Full,
            redact: Some(finder()),
            compact: None,
            archive: &config.archive(),
            prices: None,
        };
        let rendered_stories = reading.with_stories(
            &how,
            |_| String::new(),
            |stories| {
                let story = &stories[0];
                vec![
                    ("html", Html::single_page(story, Vec::new()).page(0)),
                    ("markdown", markdown(story)),
                    ("json", json(story, &[])),
                    ("terminal", terminal(story, 100)),
                ]
            },
        );
        outputs.extend(rendered_stories.expect("it is rendered").0);
        outputs
    }
}

fn finder() -> &'static Finder {
    static FINDER: std::sync::OnceLock<Finder> = std::sync::OnceLock::new();
    FINDER.get_or_init(|| Finder::new(Rules::built_in()).expect("rules"))
}

/// The session without its secrets.
fn copy(history: &History) -> String {
    let copy = history.redact(&mut Redactor::new(finder())).expect("splices lie apart");
    let source = &copy.session.source;
    String::from_utf8_lossy(&source.read(0..Source::len(source))).into_owned()
}

fn secrets() -> Vec<String> {
    let mut secrets = vec![PASSWORD.to_owned(), WORD.to_owned(), KEY.to_owned()];
    secrets.extend(key_lines());
    secrets
}

/// A session with planted secrets, and its redacted copy.
struct Planted {
    agent: &'static str,
    bytes: Vec<u8>,
    copy: String,
}

impl Planted {
    /// The outputs before the compaction, made once for all recipes.
    fn new(agent: &'static str, bytes: Vec<u8>) -> Planted {
        let outputs = Case::new(&bytes).outputs(Version::AsItWas);
        for (name, output) in &outputs {
            for secret in secrets() {
                assert!(!output.contains(&secret), "{agent}: {name} shows {secret} before");
            }
        }
        Planted { agent, bytes, copy: outputs[0].1.clone() }
    }
}

/// Compacts a session, and checks that every secret is redacted in every output afterwards, and
/// that the redacted copy of the uncompacted session is the same. Returns false if nothing was
/// compacted.
fn check(session: &Planted, recipe: &Recipe, way: Way) -> bool {
    let Planted { agent, bytes, copy } = session;
    let case = Case::new(bytes);
    let what = format!("{agent}, {}, {way:?}", recipe.name);
    let run = case.config.begin_run("compact");
    let mut compact = Compact::new(recipe, &Estimate, &run);
    compact.way = Some(way);
    match compact.run(&OpenSession::new(&case.config, &case.path)) {
        Ok(_) => {}
        // The agent could not read a compaction record in this session.
        Err(err) if err.kind() == ErrorKind::Refused && way == Way::Native => return false,
        Err(err) => panic!("{what}: {err}"),
    }
    let stored = fs::read(&case.path).expect("the session");
    if stored == *bytes {
        return false;
    }
    for version in [Version::AsItWas, Version::AsSent] {
        let outputs = case.outputs(version);
        for (name, output) in &outputs {
            for secret in secrets() {
                let found = output.find(&secret).map(|at| {
                    let start = output.floor_char_boundary(at.saturating_sub(200));
                    &output[start..output.ceil_char_boundary(at + 200)]
                });
                assert_eq!(found, None, "{what}: {name}, {version:?}, shows {secret}");
            }
        }
        if version == Version::AsItWas {
            assert_eq!(outputs[0].1, *copy, "{what}: it is as it was");
        }
    }
    let history = case.history(Version::AsItWas);
    assert!(history.is_compacted(), "{what}");
    assert_eq!(history.missing, Vec::<String>::new(), "{what}");
    assert_eq!(fs::read(&case.path).expect("the session"), stored, "{what}: nothing is written");
    true
}

fn recipes() -> impl Iterator<Item = Recipe> {
    BUILT_IN.iter().map(|(name, _)| {
        let recipe = built_in(name).expect("a built-in recipe");
        // The recorded sessions are shorter than what most recipes keep.
        let keep = Keep { turns: Some(1), unanswered: true, ..Keep::default() };
        Recipe { keep, trigger: Default::default(), ..recipe }
    })
}

/// Of the pairs of a session and a recipe, one in this many is tested, because all of them take
/// minutes. Each recipe meets several agents, and each session several recipes.
const ONE_OF: usize = 7;

/// Tests a part of the recipes; at least `least` compactions must have been made.
fn check_part(part: usize, least: usize) {
    let mut compacted = 0;
    for (idx, fixture) in fixtures::all().iter().enumerate() {
        let chosen: Vec<Recipe> = (recipes().enumerate())
            .filter(|(number, _)| number % PARTS == part && (idx + number) % ONE_OF == 0)
            .map(|(_, recipe)| recipe)
            .collect();
        if chosen.is_empty() {
            continue;
        }
        let Some(bytes) = planted(&fixture.bytes()) else { continue };
        let Ok(session) = Loaded::read(&bytes[..], None) else { continue };
        if session.writer().is_err() {
            continue;
        }
        let format = FORMATS.iter().find(|it| it.name == session.format.name).expect("known");
        let session = Planted::new(format.name, bytes);
        for recipe in chosen {
            compacted += usize::from(check(&session, &recipe, Way::Rewrite));
            if format.native.is_some() {
                compacted += usize::from(check(&session, &recipe, Way::Native));
            }
        }
    }
    assert!(compacted >= least, "{compacted}");
}

/// The number of tests that may run in parallel.
const PARTS: usize = 4;

#[test]
fn what_was_hidden_stays_hidden_with_recipes_0_4_8() {
    check_part(0, 3);
}

#[test]
fn what_was_hidden_stays_hidden_with_recipes_1_5_9() {
    check_part(1, 2);
}

#[test]
fn what_was_hidden_stays_hidden_with_recipes_2_6_10() {
    check_part(2, 3);
}

#[test]
fn what_was_hidden_stays_hidden_with_recipes_3_7() {
    check_part(3, 2);
}

/// A session that was compacted twice, with records appended in between and afterwards.
#[test]
fn a_session_is_read_as_a_restore_would_give_it_back() {
    for fixture in fixtures::all() {
        let Some(bytes) = planted(&fixture.bytes()) else { continue };
        let Ok(session) = Loaded::read(&bytes[..], None) else { continue };
        if session.writer().is_err() || !bytes.ends_with(b"\n") {
            continue;
        }
        let case = Case::new(&bytes);
        let more = b"{\"type\":\"custom\"}\n";
        for recipe in ["clear-tool-uses", "transcript"] {
            let recipe = recipes().find(|it| it.name == recipe).expect("a recipe");
            let run = case.config.begin_run("compact");
            let session = OpenSession::new(&case.config, &case.path);
            Compact::new(&recipe, &Estimate, &run).run(&session).expect("it is compacted");
            append(&case.path, more);
        }
        let read = |history: &History| {
            let source = &history.session.source;
            source.read(0..Source::len(source)).into_owned()
        };
        let history = case.history(Version::AsItWas);
        let context = history.session.transcript.context.len();
        let whole = read(&history);
        assert!(whole.starts_with(&bytes), "{}", fixture.path.display());
        assert!(context >= Loaded::read(&bytes[..], None).expect("it").transcript.context.len());
        assert_eq!(read(&case.history(Version::AsSent)), fs::read(&case.path).expect("it"));
        let session = OpenSession::new(&case.config, &case.path);
        Restore::default().run(&session).expect("it is restored");
        assert_eq!(whole, fs::read(&case.path).expect("the session"));
    }
}

fn append(path: &Path, more: &[u8]) {
    let mut bytes = fs::read(path).expect("a session");
    bytes.extend_from_slice(more);
    fs::write(path, bytes).expect("a session");
}
