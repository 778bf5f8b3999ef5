use epitome_tokens::Estimate;

use super::*;
use crate::session::Loaded;

/// The messages of a JSON list.
fn list(json: &str) -> Vec<&RawValue> {
    serde_json::from_str(json).expect("a list of messages")
}

fn ids(pieces: &Pieces) -> Vec<u64> {
    pieces.iter().map(|piece| piece.id).collect()
}

#[test]
fn a_history_that_comes_back_is_the_history_however_it_is_spelled() {
    let counter = Estimate::new();
    for fixture in fixtures::all() {
        let bytes = fixture.bytes();
        let session = Loaded::read(&*bytes, None).expect("a session");
        let history = History::from_transcript(&session.transcript, &session.source, &counter);
        let mut exchange = Exchange::new(&history, &session.source, &counter);
        let sent = exchange.outgoing(0..history.entries.len());
        let pieces = exchange.incoming(&list(&sent)).expect("messages");
        assert_eq!(ids(&pieces), ids(&history.pieces), "{}", fixture.path.display());
        let value: Value = serde_json::from_str(&sent).expect("JSON");
        let pretty = serde_json::to_string_pretty(&value).expect("JSON");
        let pieces = exchange.incoming(&list(&pretty)).expect("messages");
        assert_eq!(ids(&pieces), ids(&history.pieces), "{}", fixture.path.display());
        // A new text is a new block.
        let new = r#"[{"role":"user","content":"Nobody has said this before."}]"#;
        let pieces = exchange.incoming(&list(new)).expect("a message");
        assert_eq!(pieces.len(), 1);
        assert!(!history.pieces.iter().any(|piece| piece.id == pieces[0].id));
    }
}

#[test]
fn what_is_no_message_is_refused_with_its_place() {
    let counter = Estimate::new();
    let mut exchange = Exchange::new(&History::default(), &&b""[..], &counter);
    let messages = r#"[{"role":"user","content":"Hi."},{"role":"tool","content":"ok"}]"#;
    let refused = exchange.incoming(&list(messages)).map(|pieces| pieces.len());
    let why = "message 2 of 2 is none of anthropic: the role `\"tool\"`";
    assert_eq!(refused, Err(why.to_owned()));
}
