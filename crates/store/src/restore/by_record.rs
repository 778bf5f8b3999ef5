//! Restores where no hash of the whole file matches: line by line, the newest generation first.
//!
//! An edit is undone in a line only if the edit certainly made that line. An equal text is not
//! enough: in a document with line breaks an edit can leave a line such as `},`, which occurs in
//! many other places.

use std::collections::{BTreeMap, HashMap, HashSet};

use epitome_model::{Ref, Source, Span, Splice};

use super::{Blobs, moved, undo_record};
use crate::archive::{EditedRecord, Generation, Line, RecordHash, lines};
use crate::source::{Spliced, exactly};
use epitome_error::{Error, ErrorKind, Result};

/// A line of at least this many bytes that is a JSON object is taken to be unique. This is used
/// only for generations that do not record which edited records are also lines of the file before
/// the compaction.
const DISTINCT: usize = 40;

/// The lines of a file while a restore goes back through the generations.
pub(super) struct Walk<'a> {
    current: &'a dyn Source,
    /// The span of each line in the current file, and the hash of the line after the edits that
    /// were undone so far.
    lines: Vec<Line>,
    /// The length of each line after the edits that were undone so far.
    lens: Vec<u64>,
    /// For each line, the splices of undone edits, relative to its beginning.
    edits: HashMap<usize, Vec<Splice>>,
    /// For each line, the number of edits that were undone in it.
    undone: HashMap<usize, u64>,
}

/// The index of a line, and the record that was identified with the line.
type Match<'g> = (usize, &'g EditedRecord);

impl<'a> Walk<'a> {
    pub(super) fn from_source(current: &'a dyn Source) -> Result<Walk<'a>> {
        let lines = lines(current)?;
        let lens = lines.iter().map(|line| line.span.len()).collect();
        Ok(Walk { current, lines, lens, edits: HashMap::new(), undone: HashMap::new() })
    }

    /// Identifies the lines that are records of a generation, in the order of the file. Of lines
    /// with the same text, at most as many are matched as there are records with that text. A
    /// record is left out if it is not certain which line it is.
    ///
    /// A record is identified by its text, if only the edit can have made that text. Otherwise it
    /// is identified by its position: its distances from the nearest lines before and after it that
    /// were identified by their text, or from the beginning and the end of the file, must be the
    /// same as right after the edit.
    pub(super) fn matches<'g>(&self, generation: &'g Generation) -> Result<Vec<Match<'g>>> {
        let mut open: BTreeMap<RecordHash, Group<'g>> = BTreeMap::new();
        // An empty record would match any empty line.
        for record in generation.records.iter().filter(|record| record.len > 0) {
            open.entry(record.hash).or_default().records.push(record);
        }
        for (idx, line) in self.lines.iter().enumerate() {
            if let Some(group) = open.get_mut(&line.hash) {
                group.lines.push(idx);
            }
        }
        for group in open.values_mut() {
            group.is_proof = match (&generation.shared, group.lines.first()) {
                (Some(shared), _) => !shared.contains(&group.records[0].hash),
                (None, Some(&line)) => is_distinct(&self.bytes_now(line)?, group.records[0]),
                (None, None) => false,
            };
        }
        let mut matches: Vec<Match<'g>> =
            open.values_mut().flat_map(Group::match_in_order).collect();
        matches.extend(self.by_place(generation, &mut open, &matches));
        matches.extend(open.values_mut().flat_map(Group::match_in_order));
        matches.extend(open.values_mut().flat_map(Group::match_alike));
        matches.sort_by_key(|(idx, _)| *idx);
        Ok(matches)
    }

    /// Matches the records whose distances from the nearest records in `certain`, or from the
    /// beginning and the end of the file, are the same as right after the edit.
    fn by_place<'g>(
        &self,
        generation: &Generation,
        open: &mut BTreeMap<RecordHash, Group<'g>>,
        certain: &[Match<'g>],
    ) -> Vec<Match<'g>> {
        let mut starts = Vec::with_capacity(self.lens.len());
        let mut len = 0;
        for line in &self.lens {
            starts.push(len);
            len += line + 1;
        }
        let end = len.saturating_sub(1);
        // Pairs of a position right after the edit and the same position now: those of the records
        // in `certain`, of the beginning of the file, and of its end.
        let mut anchors = vec![(0, 0), (generation.after.len, end)];
        anchors.extend(certain.iter().map(|(idx, record)| (record.at, starts[*idx])));
        anchors.sort_unstable();
        let mut found = Vec::new();
        for group in open.values_mut() {
            group.records.retain(|record| {
                let next = anchors.partition_point(|(was, _)| *was <= record.at);
                let (before, after) = match (anchors.get(next.wrapping_sub(1)), anchors.get(next)) {
                    (Some(before), Some(after)) => (before, after),
                    (_, None) | (None, _) => return true,
                };
                let is_still = after.0.checked_sub(before.0) == after.1.checked_sub(before.1);
                let at = before.1 + (record.at - before.0);
                let idx = starts.binary_search(&at).ok().filter(|_| is_still);
                let line = idx.and_then(|idx| group.lines.iter().position(|&line| line == idx));
                let Some(line) = line else { return true };
                found.push((group.lines.remove(line), *record));
                false
            });
        }
        found
    }

    /// The bytes of a line in the current file.
    pub(super) fn bytes(&self, idx: usize) -> Result<Vec<u8>> {
        let Span { start, end } = self.lines[idx].span;
        Ok(exactly(self.current, start..end)?.into_owned())
    }

    /// The bytes of a line after the edits that were undone so far.
    fn bytes_now(&self, idx: usize) -> Result<Vec<u8>> {
        let bytes = self.bytes(idx)?;
        let view = Spliced::new(&bytes, self.edits(idx))?;
        Ok(view.read(0..view.len()).into_owned())
    }

    /// The splices that undid edits in a line, relative to its beginning.
    pub(super) fn edits(&self, idx: usize) -> Vec<Splice> {
        self.edits.get(&idx).cloned().unwrap_or_default()
    }

    /// The offset of a line in the current file.
    pub(super) fn start(&self, idx: usize) -> u64 {
        self.lines[idx].span.start
    }

    /// Undoes the edits that a generation made in a line.
    pub(super) fn undo(
        &mut self,
        idx: usize,
        generation: u64,
        record: &EditedRecord,
        blobs: &dyn Blobs,
    ) -> Result<()> {
        let bytes = self.bytes(idx)?;
        let view = Spliced::new(&bytes, self.edits(idx))?;
        let view = view.with_more(undo_record(generation, record, 0, blobs)?)?;
        self.lines[idx].hash = RecordHash::compute(&view.read(0..view.len()));
        self.lens[idx] = view.len();
        self.edits.insert(idx, view.into_splices());
        *self.undone.entry(idx).or_default() += 1;
        Ok(())
    }

    /// Drops the splices of lines whose undone edits cancel out. Returns the number of undone edits
    /// in the other lines.
    pub(super) fn drop_what_is_as_before(&mut self) -> Result<u64> {
        for idx in self.undone.keys().copied().collect::<Vec<usize>>() {
            if RecordHash::compute(&self.bytes(idx)?) == self.lines[idx].hash {
                self.edits.remove(&idx);
                self.undone.remove(&idx);
            }
        }
        Ok(self.undone.values().sum())
    }

    /// Whether the file has a line that one of the generations certainly made, or that contains a
    /// reference to bytes that one of them removed. Generations that are restores are ignored.
    pub(super) fn shows_traces_of(&self, generations: &[&Generation]) -> Result<bool> {
        let compactions = generations.iter().filter(|generation| !generation.is_restore());
        for generation in compactions.clone() {
            let known: HashMap<RecordHash, &EditedRecord> =
                generation.records.iter().map(|record| (record.hash, record)).collect();
            for (idx, line) in self.lines.iter().enumerate().filter(|(_, it)| !it.span.is_empty()) {
                let Some(record) = known.get(&line.hash) else { continue };
                let is_proof = match &generation.shared {
                    Some(shared) => !shared.contains(&line.hash),
                    None => is_distinct(&self.bytes_now(idx)?, record),
                };
                if is_proof {
                    return Ok(true);
                }
            }
        }
        let names: HashSet<Vec<u8>> = compactions
            .flat_map(|generation| generation.blobs())
            .map(|hash| hash.reference().to_string().into_bytes())
            .collect();
        for idx in 0..self.lines.len() {
            if words(&self.bytes_now(idx)?).any(|word| names.contains(word)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn into_splices(self) -> Vec<Splice> {
        let mut edits: Vec<(usize, Vec<Splice>)> = self.edits.into_iter().collect();
        edits.sort_by_key(|(idx, _)| *idx);
        let splices = edits.into_iter().flat_map(|(idx, edits)| {
            let start = self.lines[idx].span.start;
            edits.into_iter().map(move |it| Splice { span: moved(it.span, start), ..it })
        });
        splices.collect()
    }
}

/// The records and lines with the same text that are not matched yet.
#[derive(Default)]
struct Group<'g> {
    records: Vec<&'g EditedRecord>,
    lines: Vec<usize>,
    /// Whether only the edit can have made a line with that text.
    is_proof: bool,
}

impl<'g> Group<'g> {
    /// Matches lines and records by their order, if there are as many lines as records and only the
    /// edits can have made the text of the lines.
    fn match_in_order(&mut self) -> Vec<Match<'g>> {
        if !self.is_proof || self.lines.len() != self.records.len() {
            return Vec::new();
        }
        self.lines.drain(..).zip(self.records.drain(..)).collect()
    }

    /// Matches lines and records by their order, if only the edits can have made the text of the
    /// lines and all records are undone in the same way. There may be more records than lines.
    fn match_alike(&mut self) -> Vec<Match<'g>> {
        let Some(first) = self.records.first() else { return Vec::new() };
        let are_alike = self.records.iter().all(|record| record.splices == first.splices);
        if !self.is_proof || !are_alike || self.lines.len() > self.records.len() {
            return Vec::new();
        }
        self.lines.drain(..).zip(self.records.drain(..)).collect()
    }
}

/// Whether a line is taken to be unique: it contains a reference to bytes that were removed from
/// it, or has at least `DISTINCT` bytes and the braces of a JSON object.
fn is_distinct(bytes: &[u8], record: &EditedRecord) -> bool {
    let is_record = bytes.len() >= DISTINCT && bytes.starts_with(b"{") && bytes.ends_with(b"}");
    if is_record {
        return true;
    }
    let names = record.splices.iter().map(|splice| splice.blob.reference().to_string());
    let names: HashSet<String> = names.collect();
    words(bytes).any(|word| std::str::from_utf8(word).is_ok_and(|word| names.contains(word)))
}

/// All sequences of bytes that have the length of a reference and begin with `k`, as references do.
fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.windows(1 + Ref::DIGITS).filter(|word| word[0] == b'k')
}

/// Returns an error if `after` has more faults, or more violations of the agent's invariants, than
/// `before`.
pub(super) fn check_sound(before: &dyn Source, after: &dyn Source, agent: &str) -> Result<()> {
    // For an unknown format there are no invariants to check.
    let Some(format) = epitome_formats::find_format(agent) else { return Ok(()) };
    let mut faults = Vec::new();
    let transcript = (format.read)(before, &mut faults);
    let violations = format.invariants.check(&transcript, before);
    let mut new_faults = Vec::new();
    let transcript = (format.read)(after, &mut new_faults);
    let new_violations = format.invariants.check(&transcript, after);
    let cause = if new_faults.len() > faults.len() {
        let fault = new_faults.iter().find(|it| faults.iter().all(|old| old.what != it.what));
        fault.or(new_faults.first()).map(|fault| format!("line {}: {}", fault.line, fault.what))
    } else if new_violations.len() > violations.len() {
        let mut new = new_violations.iter();
        let new = new.find(|it| violations.iter().all(|old| old.what != it.what));
        new.or(new_violations.first()).map(ToString::to_string)
    } else {
        None
    };
    let Some(cause) = cause else { return Ok(()) };
    let what = "the file was changed since, and restored record by record it would be no whole \
                session";
    let cause = Error::new(ErrorKind::Refused, cause);
    Err(Error::new(ErrorKind::Refused, what)
        .because(cause)
        .with_hint("`--block REF` restores one piece, and `epitome show REF` prints it"))
}
