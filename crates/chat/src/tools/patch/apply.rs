//! Applies the hunks of a patch to a text, each below the previous one.

use super::parse::{Hunk, Kind};

/// The text with all hunks applied.
///
/// # Errors
///
/// The number of a hunk that cannot be applied, and the reason, for example that its lines are
/// found more than once.
pub(super) fn apply(text: &str, hunks: &[Hunk]) -> Result<String, String> {
    // The last line is empty if the text ends with a line feed.
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let end = if lines.first().is_some_and(|line| line.ends_with('\r')) { "\r" } else { "" };
    let mut from = 0;
    for (at, hunk) in hunks.iter().enumerate() {
        let placed = place(&mut lines, from, hunk, end);
        from = placed.map_err(|why| format!("change {}: {why}", at + 1))?;
    }
    Ok(lines.join("\n"))
}

/// Applies one hunk, below the line `from`. Returns the index of the line after the hunk.
fn place(lines: &mut Vec<String>, from: usize, hunk: &Hunk, end: &str) -> Result<usize, String> {
    let mut from = from;
    if let Some(below) = &hunk.below {
        let found = (from..lines.len()).find(|at| alike(&lines[*at], below, str::trim));
        from = found.ok_or_else(|| format!("there is no line `{below}`"))? + 1;
    }
    let old = hunk.lines.iter().filter(|(kind, _)| *kind != Kind::Comes);
    let old: Vec<&str> = old.map(|(_, line)| &**line).collect();
    let at = find(lines, from, &old, hunk)?;
    let mut new = Vec::new();
    let mut next = at;
    for (kind, text) in &hunk.lines {
        match kind {
            // Unchanged lines are copied from the file, because their trailing white space may
            // differ.
            Kind::Stays => new.push(lines[next].clone()),
            Kind::Goes => {}
            Kind::Comes => new.push(format!("{text}{end}")),
        }
        next += usize::from(*kind != Kind::Comes);
    }
    let behind = at + new.len();
    lines.splice(at..at + old.len(), new);
    Ok(behind)
}

/// The index at which the lines `old` begin, at or after `from`. They are compared exactly, except
/// for a carriage return at the end of a line; if that finds nothing, they are compared again
/// without trailing white space. A hunk at the end of the file must end with the last line. An
/// error if the lines are found nowhere, or more than once.
fn find(lines: &[String], from: usize, old: &[&str], hunk: &Hunk) -> Result<usize, String> {
    let is_last_empty = lines.last().is_some_and(String::is_empty);
    let last = lines.len() - usize::from(is_last_empty);
    if old.is_empty() {
        // A hunk that only adds lines is placed after the line that it names, or at the end if it
        // names none.
        return Ok(if hunk.below.is_some() { from } else { last });
    }
    let exact: fn(&str) -> &str = |line| line.strip_suffix('\r').unwrap_or(line);
    for trimmed in [exact, str::trim_end] {
        let most = lines.len().saturating_sub(old.len() - 1);
        let found = (from..most).filter(|at| {
            let mut here = lines[*at..at + old.len()].iter().zip(old);
            let is_there = here.all(|(line, old)| alike(line, old, trimmed));
            is_there && (!hunk.at_end || at + old.len() == last)
        });
        let found: Vec<usize> = found.collect();
        match found[..] {
            [] => {}
            [at] => return Ok(at),
            [..] => {
                let times = found.len();
                return Err(format!("its lines are there {times} times: give more around it"));
            }
        }
    }
    let first = old.iter().find(|line| !line.trim().is_empty()).unwrap_or(&"");
    Err(format!("its lines are not there (`{first}` …): read the file again"))
}

fn alike(line: &str, other: &str, trimmed: fn(&str) -> &str) -> bool {
    trimmed(line) == trimmed(other)
}
