//! `cargo lab search`: measures how often a question finds the session that has the answer.
//!
//! The questions are made by this program from the recorded sessions and, if they are available,
//! from sessions of real work: each question is made from a sentence that only one session
//! contains. No user asks like this. So the numbers compare ways to search, but do not predict what
//! a user finds.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use epitome::{Config, agents};
use epitome_formats::FORMATS;
use epitome_search::{Query, Scope, Search};
use rusqlite::Connection;
use xtask::{print, say};

/// The maximum number of questions.
const QUESTIONS: usize = 200;
/// How many words a sentence must have to become a question.
const WORDS: std::ops::RangeInclusive<usize> = 8..=30;
/// The number of words in a question that come from its sentence, at most.
const ASKED: usize = 6;
/// Words that say nothing about the topic of a sentence.
const STOP: [&str; 48] = [
    "about", "after", "all", "also", "and", "are", "because", "been", "before", "but", "can",
    "could", "did", "does", "for", "from", "had", "has", "have", "here", "into", "its", "just",
    "let", "like", "more", "need", "not", "now", "only", "other", "should", "some", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "what", "when", "which", "will",
    "with", "would",
];

/// How a sentence becomes a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The first content words of the sentence.
    Words,
    /// Every other content word, behind the words `where did we talk about`.
    Question,
    /// The first content words with other endings.
    Inflected,
}

/// A question, and the session that has the answer.
struct Question {
    kind: Kind,
    text: String,
    session: PathBuf,
}

/// A way to search: its name, and the function that returns the session that it finds first.
type Way<'a> = (&'a str, Box<dyn Fn(&str) -> Result<Option<PathBuf>> + 'a>);

/// Prints the table.
///
/// # Errors
///
/// If a file cannot be written, or a search fails.
pub(crate) fn run() -> Result<()> {
    let home = tempfile::tempdir()?;
    fill(home.path())?;
    let config = Config::from_home(home.path());
    let files = agents::sessions(&config.agents, None);
    let search = Search::open(&config, Scope::Machine)?;
    let begin = Instant::now();
    search.update(&files, &|_| {})?;
    say(&format!("{} sessions indexed in {:.1} s", files.len(), begin.elapsed().as_secs_f64()));
    let mut texts: BTreeMap<PathBuf, Vec<(String, String)>> = BTreeMap::new();
    for file in &files {
        let messages = search.around(&file.path, None, 0, 0, usize::MAX)?;
        let messages = messages.into_iter().map(|message| (message.role, message.text));
        texts.insert(file.path.clone(), messages.collect());
    }
    let questions = questions(&texts);
    ensure!(questions.len() > 50, "only {} questions can be made", questions.len());
    let plain = plain_index(&texts)?;
    let whole: Vec<(PathBuf, String)> = texts
        .iter()
        .map(|(path, texts)| {
            let texts: Vec<String> = texts.iter().map(|(_, text)| text.to_lowercase()).collect();
            (path.clone(), texts.join("\n"))
        })
        .collect();
    let ways: [Way<'_>; 4] = [
        ("`epitome mcp`: all words, else some", Box::new(|asked| ours(&search, asked, true))),
        ("`epitome search`: all words", Box::new(|asked| ours(&search, asked, false))),
        ("FTS5 as it comes: any word, bm25", Box::new(|asked| fts5(&plain, asked))),
        ("grep: the file with most of the words", Box::new(|asked| Ok(grep(&whole, asked)))),
    ];
    print(&format!("{} questions over {} sessions\n", questions.len(), files.len()));
    print("| search | words | question | other endings | all: hit@1 | p50 |");
    print("|---|---:|---:|---:|---:|---:|");
    for (name, find) in &ways {
        print(&row(name, &questions, find)?);
    }
    Ok(())
}

fn row(
    name: &str,
    questions: &[Question],
    find: &dyn Fn(&str) -> Result<Option<PathBuf>>,
) -> Result<String> {
    let mut hits: BTreeMap<Kind, (usize, usize)> = BTreeMap::new();
    let mut times: Vec<Duration> = Vec::new();
    for question in questions {
        let begin = Instant::now();
        let found = find(&question.text)?;
        times.push(begin.elapsed());
        let (hit, all) = hits.entry(question.kind).or_default();
        *hit += usize::from(found.as_ref() == Some(&question.session));
        *all += 1;
    }
    times.sort_unstable();
    let share = |(hit, all): (usize, usize)| format!("{:.1}%", hit as f64 * 100.0 / all as f64);
    let cells: Vec<String> = hits.values().map(|it| share(*it)).collect();
    let all = hits.values().fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    let p50 = times[times.len() / 2].as_secs_f64() * 1e3;
    Ok(format!("| {name} | {} | {} | {p50:.1} ms |", cells.join(" | "), share(all)))
}

/// Writes the sessions into the folders of their agents.
fn fill(home: &Path) -> Result<()> {
    let mut all: Vec<(String, Vec<u8>)> = Vec::new();
    for fixture in fixtures::all() {
        all.push((format!("{}-{}", fixture.agent, fixture.name), fixture.bytes()));
    }
    let real = fixtures::corpus("questions of real sessions");
    all.extend(real.iter().map(|real| (real.name.clone(), real.bytes())));
    for (name, bytes) in all {
        let format = FORMATS.iter().find(|format| (format.sniff)(&bytes));
        let place = match format.map(|format| format.name) {
            Some("claude") => format!(".claude/projects/-{name}/{name}.jsonl"),
            Some("codex") => {
                format!(".codex/sessions/2026/11/21/rollout-2026-11-21T05-37-06-{name}.jsonl")
            }
            Some("pi") => format!(".pi/agent/sessions/--{name}--/2026_{name}.jsonl"),
            Some("gemini") => format!(".gemini/{}/{name}/chats/session-{name}.jsonl", "tmp"),
            _ => continue,
        };
        let path = home.join(place);
        fs::create_dir_all(path.parent().context("it has one")?)?;
        fs::write(path, bytes)?;
    }
    Ok(())
}

/// Makes questions from sentences that only one session contains, about the same number from each
/// session.
fn questions(texts: &BTreeMap<PathBuf, Vec<(String, String)>>) -> Vec<Question> {
    let mut owners: HashMap<&str, HashSet<&Path>> = HashMap::new();
    for (path, texts) in texts {
        for sentence in texts.iter().flat_map(|(_, text)| sentences(text)) {
            owners.entry(sentence).or_default().insert(path);
        }
    }
    let each = QUESTIONS.div_ceil(texts.len().max(1));
    let mut questions = Vec::new();
    for (path, texts) in texts {
        let spoken = texts.iter().filter(|(role, _)| role == "assistant" || role == "user");
        let spoken: Vec<&str> = spoken.flat_map(|(_, text)| sentences(text)).collect();
        let own: Vec<&str> = spoken
            .into_iter()
            .filter(|it| owners[it].len() == 1 && content_words(it).len() >= ASKED)
            .collect();
        for n in 0..each.min(own.len()) {
            let sentence = own[n * own.len() / each.min(own.len())];
            let kind = [Kind::Words, Kind::Question, Kind::Inflected][questions.len() % 3];
            questions.push(Question {
                kind,
                text: question_text(kind, sentence),
                session: path.clone(),
            });
        }
    }
    questions.truncate(QUESTIONS);
    questions
}

/// The sentences of a text that look like prose: of [`WORDS`] words, in ASCII, and without
/// characters of code.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.lines().flat_map(|line| line.split(". "));
    parts.map(str::trim).filter(|part| {
        let is_code = part.contains(['{', '}', '=', '|', '<', '>', '\\', '`', '/', '#', '[']);
        WORDS.contains(&part.split_whitespace().count()) && part.is_ascii() && !is_code
    })
}

fn content_words(sentence: &str) -> Vec<&str> {
    let words = sentence.split(|c: char| !c.is_ascii_alphanumeric());
    let says = |word: &&str| word.len() > 2 && !STOP.contains(&&*word.to_ascii_lowercase());
    words.filter(says).collect()
}

fn question_text(kind: Kind, sentence: &str) -> String {
    let words = content_words(sentence);
    match kind {
        Kind::Words => words[..ASKED].join(" "),
        Kind::Question => {
            let words: Vec<&str> = words.into_iter().step_by(2).take(ASKED).collect();
            format!("where did we talk about {}", words.join(" "))
        }
        Kind::Inflected => {
            let words: Vec<String> = words.iter().take(ASKED).map(|it| inflected(it)).collect();
            words.join(" ")
        }
    }
}

/// The word without its ending, or with an `s` if it has none of these endings.
fn inflected(word: &str) -> String {
    for ending in ["ing", "ed", "es", "s"] {
        if let Some(stem) = word.strip_suffix(ending).filter(|stem| stem.len() > 2) {
            return stem.to_owned();
        }
    }
    format!("{word}s")
}

fn ours(search: &Search, asked: &str, is_relaxing: bool) -> Result<Option<PathBuf>> {
    let query = Query::parse(asked)?;
    let hits = match is_relaxing {
        true => search.find_or_relax(&query, 10)?.0,
        false => search.find(&query, 10)?,
    };
    Ok(hits.hits.into_iter().next().map(|hit| hit.session))
}

/// The messages in a plain table of FTS5, to compare with epitome's own search.
fn plain_index(texts: &BTreeMap<PathBuf, Vec<(String, String)>>) -> Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch("CREATE VIRTUAL TABLE m USING fts5 (path UNINDEXED, text); BEGIN")?;
    for (path, texts) in texts {
        let mut insert = connection.prepare("INSERT INTO m VALUES (?, ?)")?;
        for (_, text) in texts {
            insert.execute([path.to_string_lossy().as_ref(), text])?;
        }
    }
    connection.execute_batch("COMMIT")?;
    Ok(connection)
}

fn fts5(connection: &Connection, asked: &str) -> Result<Option<PathBuf>> {
    let words: Vec<String> = asked.split_whitespace().map(|word| format!("\"{word}\"")).collect();
    let sql = "SELECT path FROM m WHERE m MATCH ? ORDER BY rank LIMIT 10";
    let mut find = connection.prepare(sql)?;
    let mut rows = find.query([words.join(" OR ")])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(PathBuf::from(row.get::<_, String>(0)?)))
}

/// The file that contains most of the words; if several contain equally many, the one in which they
/// occur most often.
fn grep(whole: &[(PathBuf, String)], asked: &str) -> Option<PathBuf> {
    let words: Vec<String> = asked.split_whitespace().map(str::to_lowercase).collect();
    let score = |text: &String| {
        let counts =
            words.iter().map(|word| memchr::memmem::find_iter(text.as_bytes(), word).count());
        let counts: Vec<usize> = counts.collect();
        (counts.iter().filter(|n| **n > 0).count(), counts.iter().sum::<usize>())
    };
    whole.iter().max_by_key(|(_, text)| score(text)).map(|(path, _)| path.clone())
}
