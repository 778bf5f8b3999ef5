//! Plans the questions for a summary: one about the whole history, or several for notes of its
//! parts and one for a summary of the notes.

use epitome_model::Tokens;

use super::history::{cut, escape_tags};
use super::question::{JOINED, MERGE, PART, WHOLE};
use super::{Stage, SummaryInProgress};
use crate::ask::Ask;

/// Maximum number of parts of the history, each of which is sent in one question. If there would be
/// more, records are truncated further.
const MOST_ASKS: usize = 24;
/// Maximum number of times that the maximum length of records is halved.
const HALVINGS: u32 = 4;

impl SummaryInProgress {
    /// Plans the questions: one about the whole history if that fits, or else one about each of its
    /// parts. Long records are truncated only as far as necessary. The error says why no question
    /// fits.
    pub(super) fn plan(&mut self) -> Result<(), String> {
        for halvings in 0..=HALVINGS {
            let history =
                join(self.pieces.iter().map(|piece| piece.text_with_halved_limit(halvings)));
            if let Some(ask) = self.fits(WHOLE, &[("history", history)]) {
                self.ask = ask;
                self.stage = Stage::Last;
                return Ok(());
            }
        }
        let parts = (0..=HALVINGS).find_map(|halvings| self.parts(halvings));
        let parts = parts.ok_or_else(|| {
            format!("the history is too long for a window of {} tokens", self.writer.window)
        })?;
        let of = parts.len().to_string();
        let asks: Option<Vec<Ask>> = parts
            .into_iter()
            .enumerate()
            .map(|(n, history)| {
                let n = (n + 1).to_string();
                self.fits(PART, &[("history", history), ("n", n), ("of", of.clone())])
            })
            .collect();
        let asks = asks.ok_or_else(|| self.no_room())?;
        self.next(Vec::new(), asks)
    }

    /// Splits the history into parts that each fit into one question. `None` if there are too many
    /// parts, or if a record or a part does not fit.
    fn parts(&self, halvings: u32) -> Option<Vec<String>> {
        let empty = self.question(PART, &[("n", "99".into()), ("of", "99".into())]);
        let room = self.room(empty.max_tokens) - self.count(&empty);
        let mut parts: Vec<String> = Vec::new();
        let mut filled = Tokens(0);
        for piece in &self.pieces {
            let mut text = piece.text_with_halved_limit(halvings);
            let mut cap = 4_096;
            let mut tokens = self.writer.counter.count(&text) + Tokens(2);
            while tokens > room {
                if cap == 0 {
                    return None;
                }
                cap /= 2;
                text = piece.within(cap);
                tokens = self.writer.counter.count(&text) + Tokens(2);
            }
            match parts.last_mut().filter(|_| filled + tokens <= room) {
                Some(part) => {
                    part.push('\n');
                    part.push_str(&text);
                    filled += tokens;
                }
                None => {
                    parts.push(text);
                    filled = tokens;
                }
            }
        }
        let fit = parts.len() <= MOST_ASKS
            && parts.iter().all(|part| self.fits(PART, &[("history", part.clone())]).is_some());
        fit.then_some(parts)
    }

    /// Sets the next question: the first of `open`, or if `open` is empty, a question about the
    /// notes `done`.
    pub(super) fn next(&mut self, done: Vec<String>, mut open: Vec<Ask>) -> Result<(), String> {
        if open.is_empty() {
            return self.join(done);
        }
        self.ask = open.remove(0);
        self.stage = Stage::Notes { done, open };
        Ok(())
    }

    /// Asks for a summary of the notes. If the notes are too long for one question, asks to merge
    /// them in groups first.
    fn join(&mut self, notes: Vec<String>) -> Result<(), String> {
        let of = ("of", notes.len().to_string());
        if let Some(ask) = self.fits(JOINED, &[("notes", tagged(&notes)), of]) {
            self.ask = ask;
            self.stage = Stage::Last;
            return Ok(());
        }
        if notes.len() == 1 {
            // Merging a single note would not make it shorter.
            self.ask = self.cut_to_fit(JOINED, &notes).ok_or_else(|| self.no_room())?;
            self.stage = Stage::Last;
            return Ok(());
        }
        let mut groups: Vec<Ask> = Vec::new();
        let mut group: Vec<String> = Vec::new();
        for note in notes {
            group.push(note);
            if group.len() < 2 {
                continue;
            }
            match self.merge(&group) {
                // This question replaces the question about the same notes except the last.
                Some(ask) if group.len() > 2 => {
                    groups.pop();
                    groups.push(ask);
                }
                Some(ask) => groups.push(ask),
                None if group.len() > 2 => group = group.split_off(group.len() - 1),
                None => {
                    // Two notes that do not fit into one question are truncated.
                    let cut = self.cut_to_fit(MERGE, &group).ok_or_else(|| self.no_room())?;
                    groups.push(cut);
                    group.clear();
                }
            }
        }
        if let [alone] = group.as_slice() {
            let ask = self.merge(std::slice::from_ref(alone));
            let ask = ask.or_else(|| self.cut_to_fit(MERGE, &group));
            groups.push(ask.ok_or_else(|| self.no_room())?);
        }
        self.next(Vec::new(), groups)
    }

    fn merge(&self, notes: &[String]) -> Option<Ask> {
        let of = ("of", notes.len().to_string());
        self.fits(MERGE, &[("notes", tagged(notes)), of])
    }

    fn cut_to_fit(&self, template: &str, notes: &[String]) -> Option<Ask> {
        let longest = notes.iter().map(String::len).max().unwrap_or(0);
        let of = notes.len().to_string();
        (1..24).find_map(|halvings| {
            let notes: Vec<String> =
                notes.iter().map(|note| cut(note, longest >> halvings).into_owned()).collect();
            self.fits(template, &[("notes", tagged(&notes)), ("of", of.clone())])
        })
    }
}

fn join(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join("\n")
}

fn tagged(notes: &[String]) -> String {
    let of = notes.len();
    let tagged = notes.iter().enumerate().map(|(n, note)| {
        format!("<notes part=\"{} of {of}\">\n{}\n</notes>", n + 1, escape_tags(note.trim()))
    });
    join(tagged)
}
