//! Sessions as pages and texts: nothing in a session's text may take effect as HTML, Markdown or an
//! escape sequence.

use std::collections::BTreeMap;

use epitome::Loaded;
use epitome_formats::Format;
use epitome_model::{Block, EditedTranscript, Lines, Ref, Source, Transcript};
use epitome_passes::{built_in, edits_for_reading};
use epitome_render::{
    Changes, Detail, Html, PageName, Story, StorySession, from_json, json, markdown, terminal,
};
use html5ever::tendril::TendrilSink as _;
use html5ever::{ParseOpts, parse_document};
use markup5ever_rcdom::{Handle, NodeData, RcDom};
use pulldown_cmark::{Event, Options, Parser, Tag};

/// Reads any bytes as a session, and checks the pages and texts that show it: the session as it is,
/// and as two recipes for reading leave it. Checks nothing if no format recognises the bytes.
///
/// # Panics
///
/// If a property does not hold.
pub fn page(bytes: &[u8]) {
    let Ok(session) = Loaded::read(bytes, None) else { return };
    let Loaded { format, source, transcript, .. } = &session;
    pages_are_inert(format, transcript, source);
    for recipe in ["transcript", "transcript-no-thinking"] {
        let recipe = built_in(recipe).expect("it is one of ours");
        let no_lines = |_: &Ref| -> Option<Lines> { None };
        let edits = edits_for_reading(transcript, source, &recipe, &no_lines);
        let once = EditedTranscript::new(transcript, source, &edits);
        // Shortening for reading a second time must change nothing.
        let edits = edits_for_reading(&once.transcript, &once.source, &recipe, &no_lines);
        let twice = EditedTranscript::new(&once.transcript, &once.source, &edits);
        let all = Detail::Full;
        let texts = |transcript: &Transcript, source: &dyn Source| {
            with_story(format, transcript, source, all, |story| json(story, &[]))
        };
        assert_eq!(
            texts(&once.transcript, &once.source),
            texts(&twice.transcript, &twice.source),
            "twice is once"
        );
        // The edits for reading must shorten every result of one part: the JSON does not show how
        // many tokens it has.
        for (_, entry) in once.transcript.entries() {
            for block in &entry.blocks {
                if let Block::Output(output) = block
                    && !output.from_user
                {
                    assert!(output.text(&once.source).len() < 200 || output.parts.len() > 1);
                }
            }
        }
        pages_are_inert(format, &once.transcript, &once.source);
    }
}

fn pages_are_inert(format: &Format, transcript: &Transcript, source: &dyn Source) {
    for detail in [Detail::Conversation, Detail::Calls, Detail::Steps, Detail::Full] {
        with_story(format, transcript, source, detail, |story| {
            let paged = Html::with_pages(story, PageName::new("a/b?c"), None);
            for number in 0..paged.pages() {
                html_is_inert(&paged.page(number));
            }
            html_is_inert(&Html::single_page(story, vec![("a1".to_owned(), story)]).page(0));
            markdown_is_inert(&markdown(story));
            for columns in [0, 40, 100] {
                terminal_is_inert(&terminal(story, columns));
            }
            let text = json(story, &[]);
            let read = from_json(text.as_bytes()).expect("what was written is read");
            let again = with_story(format, &read.transcript, &read.source, detail, |story| {
                json(story, &[])
            });
            assert_eq!(without_facts(&again), without_facts(&text), "it comes back as it was");
        });
    }
}

fn with_story<T>(
    format: &Format,
    transcript: &Transcript,
    source: &dyn Source,
    detail: Detail,
    show: impl FnOnce(&Story<'_>) -> T,
) -> T {
    let sub_agents = BTreeMap::new();
    let changes = Changes::from_transcript(transcript, source);
    let agent = format.name;
    show(&Story::new(StorySession {
        agent,
        transcript,
        source,
        changes,
        sub_agents: &sub_agents,
        detail,
        prices: None,
        past: None,
    }))
}

/// A JSON document without its facts: they also depend on content that reading the document does
/// not bring back.
fn without_facts(text: &str) -> serde_json::Value {
    let mut value: serde_json::Value = serde_json::from_str(text).expect("JSON");
    value["facts"] = serde_json::Value::Null;
    value
}

/// All elements of the templates of pages, with their attributes.
const ELEMENTS: &[(&str, &[&str])] = &[
    ("html", &["lang"]),
    ("head", &[]),
    ("meta", &["charset", "http-equiv", "content", "name"]),
    ("title", &[]),
    ("style", &[]),
    ("script", &[]),
    ("body", &[]),
    ("a", &["class", "id", "href", "rel", "aria-label", "data-search", "hidden"]),
    ("article", &["class", "id", "data-is"]),
    ("b", &["aria-current"]),
    ("bdi", &["class"]),
    ("blockquote", &[]),
    ("br", &[]),
    (
        "button",
        &["id", "type", "aria-label", "aria-pressed", "aria-haspopup", "data-show", "hidden"],
    ),
    ("code", &[]),
    ("dd", &[]),
    ("del", &[]),
    ("details", &["class", "id", "open", "data-kind", "data-is"]),
    ("dialog", &["id", "aria-labelledby"]),
    ("div", &["class", "id", "dir", "role", "aria-label", "data-is", "hidden"]),
    ("dl", &["class"]),
    ("dt", &[]),
    ("em", &[]),
    ("figcaption", &[]),
    ("figure", &["class"]),
    ("h1", &["class"]),
    ("h2", &["id"]),
    ("h3", &[]),
    ("h4", &[]),
    ("h5", &[]),
    ("h6", &[]),
    ("header", &["class"]),
    ("hr", &[]),
    ("img", &["class", "loading", "alt", "src"]),
    ("input", &["id", "type", "placeholder", "aria-label", "autocomplete"]),
    ("ins", &[]),
    ("kbd", &[]),
    ("li", &["class"]),
    ("main", &["id", "class"]),
    ("nav", &["class", "aria-label"]),
    ("ol", &["start", "class"]),
    ("output", &["id", "aria-live"]),
    ("p", &["class", "id", "data-is"]),
    ("pre", &["class"]),
    ("section", &["class", "id", "aria-label"]),
    ("span", &["class", "title", "aria-hidden"]),
    ("strong", &[]),
    ("summary", &[]),
    ("table", &[]),
    ("tbody", &[]),
    ("td", &[]),
    ("th", &[]),
    ("thead", &[]),
    ("time", &["datetime"]),
    ("tr", &[]),
    ("ul", &["class"]),
];

/// All elements of a drawing.
const DRAWING: &[(&str, &[&str])] = &[
    ("line", &["x1", "x2", "y1", "y2"]),
    ("rect", &["class", "x", "y", "width", "height"]),
    ("svg", &["viewBox", "preserveAspectRatio", "role", "aria-label"]),
    ("title", &[]),
];

/// Additional elements of the viewer's templates.
const OF_THE_VIEWER: &[(&str, &[&str])] = &[
    ("a", &["href", "aria-current"]),
    ("button", &["class", "type", "data-copy", "hidden"]),
    ("dd", &["class"]),
    ("details", &["open"]),
    ("div", &["aria-hidden"]),
    ("form", &["id", "class", "role", "method", "action"]),
    ("h1", &["role"]),
    ("h2", &["class"]),
    ("input", &["name", "value"]),
    ("label", &["for"]),
    ("link", &["rel", "href"]),
    ("main", &["data-file", "data-stamp"]),
    ("mark", &[]),
    ("noscript", &[]),
    ("option", &["value", "selected"]),
    ("p", &["role", "hidden"]),
    ("progress", &["max", "value", "aria-label"]),
    ("script", &["src", "defer"]),
    ("section", &["aria-live", "hidden"]),
    ("select", &["id", "name", "aria-label", "data-submit"]),
    ("span", &["id", "role", "title"]),
    ("table", &["class"]),
    ("td", &["class"]),
    ("th", &["scope", "colspan"]),
];

/// Checks a page with the table `ELEMENTS`: a parser must find only elements and attributes of
/// the templates in the page, addresses must be safe, and there must be one script and one style.
///
/// # Panics
///
/// If anything else is in the page.
pub fn html_is_inert(page: &str) {
    let mut found = elements(page, &[ELEMENTS], leads_somewhere_safe);
    found.retain(|tag| matches!(&**tag, "script" | "style"));
    found.sort();
    assert_eq!(found, ["script", "style"], "one of each, and they are ours");
}

/// Does what [`html_is_inert`] does, for a page of the viewer: its style and scripts are two links
/// and two script files.
///
/// # Panics
///
/// If anything else is in the page.
pub fn viewer_is_inert(page: &str) {
    let is_ours = |address: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || "./?=&%-_#".contains(c);
        leads_somewhere_safe(address)
            || address.starts_with("data:image/svg+xml,%3Csvg%20xmlns=")
            || address.chars().all(fits) && (!address.starts_with('/') || has_token(address))
    };
    let mut found = elements(page, &[ELEMENTS, OF_THE_VIEWER], is_ours);
    found.retain(|tag| matches!(&**tag, "script" | "style" | "link"));
    found.sort();
    assert_eq!(found, ["link", "link", "script", "script"], "they are ours");
}

/// Whether the first part of a path is a token of a viewer, which no session knows.
fn has_token(path: &str) -> bool {
    let token = path.split('/').nth(1).unwrap_or_default();
    token.len() == 64 && token.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the names of all elements of a page. Each element must be in one of the tables, with its
/// attributes; panics otherwise, and also at a comment or an unsafe address.
fn elements(
    page: &str,
    tables: &[&[(&str, &[&str])]],
    is_safe: impl Fn(&str) -> bool,
) -> Vec<String> {
    let dom = parse_document(RcDom::default(), ParseOpts::default()).one(page);
    let mut found = Vec::new();
    let mut waiting: Vec<Handle> = vec![dom.document.clone()];
    while let Some(node) = waiting.pop() {
        match &node.data {
            NodeData::Comment { contents } => panic!("a comment: {contents}"),
            NodeData::ProcessingInstruction { .. } => panic!("an instruction"),
            NodeData::Element { name, attrs, .. } => {
                let tag = &*name.local;
                let drawing = [DRAWING];
                let tables = match &*name.ns {
                    "http://www.w3.org/1999/xhtml" => tables,
                    "http://www.w3.org/2000/svg" => &drawing,
                    other => panic!("<{tag}> of {other}"),
                };
                let known = || tables.iter().copied().flatten().filter(|(known, _)| *known == tag);
                assert!(known().next().is_some(), "no template has <{tag}>");
                for attr in attrs.borrow().iter() {
                    let (key, value) = (&*attr.name.local, &*attr.value);
                    let is_known = known().any(|(_, attributes)| attributes.contains(&key));
                    assert!(is_known, "<{tag} {key}={value:?}>");
                    match key {
                        "href" => assert!(is_safe(value), "{value}"),
                        "src" if tag == "script" => assert!(is_safe(value), "{value}"),
                        "src" => assert!(value.starts_with("data:image/"), "{value}"),
                        "class" => assert!(
                            value.chars().all(|c| c.is_ascii_alphanumeric() || " -".contains(c)),
                            "{value}"
                        ),
                        _ => {}
                    }
                }
                found.push(tag.to_owned());
            }
            NodeData::Document | NodeData::Doctype { .. } | NodeData::Text { .. } => {}
        }
        waiting.extend(node.children.borrow().iter().cloned());
        // A deep tree is dropped node by node, so that the stack does not overflow.
        node.children.borrow_mut().clear();
    }
    found
}

fn leads_somewhere_safe(address: &str) -> bool {
    let address = address.to_ascii_lowercase();
    let is_file =
        address.ends_with(".html") && !address.contains([':', '/', '\\']) || address == "#";
    is_file || ["#", "https://", "http://", "mailto:"].iter().any(|it| address.starts_with(it))
}

fn markdown_is_inert(text: &str) {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut open = 0_i64;
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Html(html) | Event::InlineHtml(html) => {
                for (at, _) in html.match_indices('<') {
                    let tag: String = html[at + 1..]
                        .chars()
                        .take_while(|c| c.is_ascii_alphanumeric() || *c == '/')
                        .collect();
                    let known = ["details", "summary", "b", "i", "code"];
                    assert!(known.contains(&tag.trim_start_matches('/')), "<{tag} in {html}");
                    open += i64::from(tag == "details") - i64::from(tag == "/details");
                    assert!(open >= 0, "something is closed that was not opened: {html}");
                }
            }
            Event::Start(Tag::Image { dest_url, .. }) => panic!("a picture: {dest_url}"),
            Event::Start(Tag::Link { dest_url, .. }) => {
                assert!(leads_somewhere_safe(&dest_url), "{dest_url}");
            }
            _ => {}
        }
    }
    assert_eq!(open, 0, "everything that is opened is closed");
}

/// Checks that the only control characters in a text are line feeds and the escape sequences of our
/// own styles.
fn terminal_is_inert(text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_control() && c != '\n') {
        let after = rest[at..].strip_prefix("\u{1b}[");
        let style = after.and_then(|after| after.split_once('m')).map(|(codes, _)| codes);
        let known = ["0", "1", "2", "3", "4", "31", "32", "33", "34", "35", "36"];
        let is_ours = style.is_some_and(|codes| known.contains(&codes));
        assert!(is_ours, "{:?}", &rest[at..].chars().take(20).collect::<String>());
        rest = &rest[at + 2..];
    }
}
