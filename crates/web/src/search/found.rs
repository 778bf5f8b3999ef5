//! What a search finds.

use std::collections::HashMap;
use std::path::PathBuf;

use tantivy::collector::{Count, TopDocs};
use tantivy::query::{BooleanQuery, Occur, TermQuery};
use tantivy::schema::{IndexRecordOption, Value as _};
use tantivy::{DocAddress, Searcher, TantivyDocument, TantivyError, Term};

use super::Opened;
use super::query::Query;
use super::shape::{Known, Place, SESSION, Shape};
use super::snippet::{Run, snippet};

/// What was found, the best first.
#[derive(Clone, Debug, PartialEq)]
pub struct Hits {
    /// The first of them.
    pub hits: Vec<Hit>,
    /// How many there are in all.
    pub all: usize,
}

/// One thing that is said somewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The session: a file, or `DATABASE#ID`.
    pub session: PathBuf,
    /// Its agent.
    pub agent: String,
    /// Its id.
    pub id: String,
    /// The folder it was run in.
    pub project: Option<String>,
    /// What it is called.
    pub title: String,
    /// The number of the sub-agent that says it, from 0, in the order of the session's
    /// [`Reading`](epitome::Reading).
    pub sub_agent: Option<usize>,
    /// The anchor on the session's pages, but for what they put before those of sub-agents.
    pub anchor: String,
    /// The item of the transcript.
    pub item: usize,
    /// The turn, from 1.
    pub turn: usize,
    /// Who says it: `user`, `assistant`, `tool` or `system`.
    pub role: String,
    /// What it is: `words`, `summary`, `thinking` or `call`.
    pub kind: String,
    /// When, as the session writes it.
    pub time: Option<String>,
    /// How well it fits.
    pub score: f32,
    /// What is said there, with what was asked for marked.
    pub snippet: Vec<Run>,
}

pub(super) fn find(opened: &Opened, query: &Query, most: usize) -> tantivy::Result<Hits> {
    let searcher = opened.searcher()?;
    let shape = &opened.shape;
    let asked = query.for_index(shape);
    let top = TopDocs::with_limit(most).order_by_score();
    let (found, all) = searcher.search(&asked, &(top, Count))?;
    let mut sessions = HashMap::new();
    let mut hits = Vec::with_capacity(found.len());
    for (score, address) in found {
        hits.push(hit(&searcher, shape, query, (score, address), &mut sessions)?);
    }
    // What fits equally well: the newest first, and then in the order of sessions.
    hits.sort_by(|one, other| {
        let order = other.score.total_cmp(&one.score);
        let order = order.then_with(|| other.time.cmp(&one.time));
        let order = order.then_with(|| one.session.cmp(&other.session));
        order.then_with(|| (one.sub_agent, one.item).cmp(&(other.sub_agent, other.item)))
    });
    Ok(Hits { hits, all })
}

fn hit(
    searcher: &Searcher,
    shape: &Shape,
    query: &Query,
    (score, address): (f32, DocAddress),
    sessions: &mut HashMap<u64, Known>,
) -> tantivy::Result<Hit> {
    let document: TantivyDocument = searcher.doc(address)?;
    let text = document.get_first(shape.text).and_then(|it| it.as_str()).unwrap_or_default();
    let place: Place = about(&document, shape)?;
    let reader = searcher.segment_reader(address.segment_ord);
    let session = reader.fast_fields().u64("session")?.first(address.doc_id).unwrap_or_default();
    let known = match sessions.get(&session) {
        Some(known) => known.clone(),
        None => {
            let known = known(searcher, shape, session)?;
            sessions.insert(session, known.clone());
            known
        }
    };
    Ok(Hit {
        session: known.path.into(),
        agent: known.agent,
        id: known.id,
        project: known.project,
        title: known.title,
        sub_agent: place.sub_agent,
        anchor: place.anchor,
        item: place.item,
        turn: place.turn,
        role: place.role,
        kind: place.kind,
        time: place.time,
        score,
        snippet: snippet(text, &query.clauses),
    })
}

fn known(searcher: &Searcher, shape: &Shape, session: u64) -> tantivy::Result<Known> {
    let found =
        searcher.search(&own_document(shape, session), &TopDocs::with_limit(1).order_by_score())?;
    match found.first() {
        Some((_, address)) => about(&searcher.doc(*address)?, shape),
        None => Err(TantivyError::InternalError("a hit without a session".to_owned())),
    }
}

/// Finds a session's own document.
pub(super) fn own_document(shape: &Shape, session: u64) -> BooleanQuery {
    let session = Term::from_field_u64(shape.session, session);
    let role = Term::from_field_text(shape.role, SESSION);
    let part = |term| -> (Occur, Box<dyn tantivy::query::Query>) {
        (Occur::Must, Box::new(TermQuery::new(term, IndexRecordOption::Basic)))
    };
    BooleanQuery::new(vec![part(session), part(role)])
}

fn about<T: serde::de::DeserializeOwned>(
    document: &TantivyDocument,
    shape: &Shape,
) -> tantivy::Result<T> {
    let text = document.get_first(shape.about).and_then(|it| it.as_str()).unwrap_or_default();
    serde_json::from_str(text).map_err(|err| TantivyError::InternalError(err.to_string()))
}
