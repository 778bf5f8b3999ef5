//! `--explain`: what was done to each block of a changed request, as lines for a person.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use epitome::redact::Screen;
use epitome::wire::ledger::Treatment;
use epitome_model::Tokens;
use epitome_proxy::{ExplainedBlock, Explainer, Explanation};

use crate::app::App;
use crate::failure::{Failure, Result, Status};
use crate::text::{count, one_line};

/// The maximum number of characters of a block's description, and of a model's name.
const WHAT: usize = 60;
/// The maximum number of characters of the stub that is sent in place of a block.
const STUB: usize = 100;

/// Returns a function that appends explanations to a file, or prints them on standard error if the
/// path is `-`.
pub fn explainer(app: &App, path: &Path) -> Result<Explainer> {
    let screen = app.screen()?;
    if path == Path::new("-") {
        let color = app.global.color;
        return Ok(Arc::new(move |explanation| {
            crate::app::print_error(&render(explanation, &screen), color);
        }));
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(|err| {
        let what = format!("cannot write {}", crate::text::path(path));
        Failure::new(Status::Disk, "disk", what).because(&err)
    })?;
    let file = Mutex::new(file);
    Ok(Arc::new(move |explanation| {
        let text = render(explanation, &screen);
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        // An explanation that cannot be written must not stop the request.
        file.write_all(text.as_bytes()).ok();
    }))
}

/// The explanation of a request as text: a line about the request, and then lines about its
/// messages and blocks. Consecutive blocks that are alike share a line.
fn render(explanation: &Explanation, screen: &Screen) -> String {
    let Explanation { time, api, model, session, treatment, known, .. } = explanation;
    let model = one_line(&screen.text(model.as_deref().unwrap_or("unknown model")), WHAT);
    let session = session.map_or("-".to_owned(), |session| session.to_string()[..8].to_owned());
    let time = time.strftime("%Y-%m-%dT%H:%M:%SZ");
    let mut text = format!(
        "{time} {model} ({api}), conversation {session}: {}\n",
        describe(*treatment, explanation)
    );
    if *known > 0 && *treatment != Treatment::Cut {
        let messages = count(*known as u64, "message");
        let _ = writeln!(text, "  {messages} as they were sent before");
    }
    let mut blocks = explanation.blocks.as_slice();
    while let Some(first) = blocks.first() {
        let alike = blocks.iter().take_while(|block| is_alike(first, block)).count();
        let (group, rest) = blocks.split_at(alike);
        let _ = writeln!(text, "{}", line(group, screen));
        blocks = rest;
    }
    text
}

fn describe(treatment: Treatment, explanation: &Explanation) -> String {
    let Explanation { saved_before, saved_now, rewritten, .. } = explanation;
    let rewritten = rewritten.unwrap_or_default();
    match treatment {
        Treatment::Passed => "sent as it came".to_owned(),
        Treatment::Known => format!("sent as decided before, {saved_before} tokens fewer"),
        Treatment::Shortened => format!(
            "new results shortened, {saved_now} tokens fewer, {saved_before} by earlier decisions"
        ),
        Treatment::Cut => format!(
            "cut, {} tokens fewer; the provider writes {rewritten} tokens again",
            *saved_before + *saved_now
        ),
    }
}

/// Whether two blocks share a line: if both are sent unchanged, for the same reason. A block shares
/// a line with itself.
fn is_alike(one: &ExplainedBlock, other: &ExplainedBlock) -> bool {
    std::ptr::eq(one, other)
        || one.stub.is_none()
            && other.stub.is_none()
            && one.before == one.after
            && other.before == other.after
            && one.reason == other.reason
}

/// The line for blocks that are alike, such as ` #3 result of Bash make: 24.0k → 8.0k tokens,
/// ingest: …`. A second line has the stub, if there is one.
fn line(group: &[ExplainedBlock], screen: &Screen) -> String {
    let [first, ..] = group else { return String::new() };
    let last = group.last().map_or(first.message, |block| block.message);
    let place = match first.message == last {
        true => format!("#{last}"),
        false => format!("#{}-{last}", first.message),
    };
    let what = match group.len() {
        1 => one_line(&screen.text(&first.what), WHAT),
        blocks => count(blocks as u64, "block"),
    };
    let before: Tokens = group.iter().map(|block| block.before).sum();
    let reason = first.reason.describe();
    if first.before == first.after && first.stub.is_none() {
        return format!("  {place} {what}: {before} tokens, left: {reason}");
    }
    let after = first.after;
    let mut line = format!("  {place} {what}: {before} → {after} tokens, {reason}");
    if let Some(stub) = &first.stub {
        let _ = write!(line, "\n     sent: {}", one_line(&screen.text(stub), STUB));
    }
    line
}

#[cfg(test)]
mod tests {
    use epitome::Config;
    use epitome_proxy::Reason;

    use super::*;

    #[test]
    fn a_changed_request_is_explained_block_by_block() {
        let block = |message, what: &str, before, after, reason| ExplainedBlock {
            message,
            what: what.into(),
            before: Tokens(before),
            after: Tokens(after),
            reason,
            stub: None,
        };
        let stub = Some("[epitome k7f3a9c2: shortened, 4,210 lines]".to_owned());
        let result = "result of Bash X-Key: AKIAQ3EGRXLTPN2MWVJD \u{1b}[2J";
        let explanation = Explanation {
            time: "2026-11-25T10:00:00Z".parse().expect("a time"),
            api: "anthropic",
            model: Some("claude-haiku-4-5".into()),
            session: None,
            treatment: Treatment::Shortened,
            known: 4,
            saved_before: Tokens(0),
            saved_now: Tokens(16_000),
            rewritten: None,
            blocks: vec![
                block(5, "text of the model", 10, 10, Reason::OfModel),
                block(5, "call of Bash make", 20, 20, Reason::Call),
                block(5, "call of Bash ls", 20, 20, Reason::Call),
                ExplainedBlock { stub, ..block(6, result, 24_000, 8_000, Reason::Ingest) },
            ],
        };
        let home = tempfile::tempdir().expect("a folder");
        let text = render(&explanation, &Screen::new(&Config::from_home(home.path())));
        assert_eq!(
            text,
            "2026-11-25T10:00:00Z claude-haiku-4-5 (anthropic), conversation -: new results \
             shortened, 16.0k tokens fewer, 0 by earlier decisions\n  \
             4 messages as they were sent before\n  \
             #5 text of the model: 10 tokens, left: text of the model\n  \
             #5 2 blocks: 40 tokens, left: arguments are shortened in a cut only\n  \
             #6 result of Bash X-Key: [REDACTED:aws-access-key-1] ␛[2J: 24.0k → 8.0k tokens, \
             ingest: longer than the recipe allows, or in the context already\n     \
             sent: [epitome k7f3a9c2: shortened, 4,210 lines]\n"
        );
    }
}
