//! The same recipe does nothing on a compacted session, wherever its agent stopped and however it
//! was written.

use epitome::compaction::{PreparedCompaction, Way};
use epitome::{Error, Loaded};
use epitome_model::{Role, Transcript};
use epitome_passes::built_in;
use epitome_tokens::O200k;

/// The number of places at which a session is cut off.
const CUTS: usize = 12;
/// The same for sessions of real work, of which every fifth ([`EVERY`]) is tested. With
/// `EPITOME_WHOLE_CORPUS`, all are tested, at [`CUTS`] places.
const CUTS_OF_REAL: usize = 3;
const EVERY: usize = 5;

/// The recipes whose kept tail depends on tokens, and a simple one. All recipes are tested on whole
/// sessions with the other invariants.
const RECIPES: [&str; 3] = ["epitome", "digest", "clear-tool-uses"];

#[test]
fn recorded_sessions_are_left_alone_by_a_second_compaction() {
    for fixture in fixtures::all() {
        let session = fixture.bytes();
        for cut in cuts(&session, CUTS) {
            for recipe in RECIPES {
                check(&format!("{}/{}", fixture.agent, fixture.name), cut, recipe);
            }
        }
    }
}

#[test]
fn sessions_of_real_work_are_left_alone_by_a_second_compaction() {
    let whole = std::env::var_os("EPITOME_WHOLE_CORPUS").is_some();
    for (n, real) in fixtures::corpus("a second compaction of real sessions").iter().enumerate() {
        if whole || n % EVERY == 0 {
            let session = real.bytes();
            for cut in cuts(&session, if whole { CUTS } else { CUTS_OF_REAL }) {
                for recipe in RECIPES {
                    check(&real.name, cut, recipe);
                }
            }
        }
    }
}

/// Beginnings of the session, each up to the end of one of its turns, and at most `most` of them;
/// the first is the whole session. Empty for a read-only session.
fn cuts(session: &[u8], most: usize) -> Vec<&[u8]> {
    let Some(read) = load(session) else { return Vec::new() };
    let mut ends = ends_of_turns(&read.transcript);
    ends.push(session.len());
    let every = ends.len().div_ceil(most);
    ends.into_iter().rev().step_by(every).map(|end| &session[..end]).collect()
}

fn load(session: &[u8]) -> Option<Loaded<Vec<u8>>> {
    let read = Loaded::read(session.to_vec(), None).ok()?;
    epitome::storage::writer(read.format).ok()?;
    Some(read)
}

/// The offsets at which user messages begin, without the first.
fn ends_of_turns(transcript: &Transcript) -> Vec<usize> {
    let users = transcript.entries().filter(|(_, entry)| entry.role == Role::User);
    let mut ends: Vec<usize> = users.map(|(_, it)| it.record.span.start as usize).collect();
    ends.sort_unstable();
    ends.dedup();
    ends.into_iter().skip(1).collect()
}

fn check(name: &str, session: &[u8], recipe: &str) {
    let Some(read) = load(session) else { return };
    let mut ways = vec![Way::Rewrite];
    ways.extend(read.format.native.is_some().then_some(Way::Native));
    for way in ways {
        let name = format!("{name} to byte {}, {way:?}, {recipe}", session.len());
        // Skips a session if its compaction cannot be written in this way, or if the target has no
        // room for the texts that set rules.
        let Ok(once) = planned(&read, way, recipe) else { continue };
        let mut after = Vec::new();
        let spliced = once.spliced().expect("the splices lie apart");
        spliced.copy_to(&mut after).expect("memory is written");
        let Some(again) = load(&after) else { panic!("{name}: it is still a session") };
        let twice = planned(&again, way, recipe).unwrap_or_else(|err| panic!("{name}: {err:?}"));
        if !twice.is_empty() {
            let (first, second) = (once.kept(), twice.kept());
            panic!("{name}: {:#?}\n{first:?}\n{second:?}", twice.plan.edits);
        }
    }
}

fn planned<'a>(
    session: &'a Loaded<Vec<u8>>,
    way: Way,
    recipe: &str,
) -> Result<PreparedCompaction<'a, Vec<u8>>, Error> {
    let mut recipe = built_in(recipe).expect("a built-in recipe");
    recipe.trigger = Default::default();
    PreparedCompaction::in_way(way, session, &recipe, &O200k::new())
}
