use super::*;
use crate::Detail;
use crate::testing::{every_block, with_story};

#[test]
fn what_is_written_is_read_back() {
    let first = with_story(&every_block(), Detail::Steps, |story| json(story, &[]));
    let document = from_json(first.as_bytes()).expect("a transcript");
    assert_eq!((&*document.agent, document.sub_agents.len()), ("agent", 0));
    // A record that no model sees is not written: all items after it move up by one.
    let entries = document.transcript.entries().count();
    assert_eq!(entries, every_block().transcript().entries().count());
    let texts = |transcript: &Transcript, source: &dyn Source| -> Vec<(Role, String)> {
        let blocks = transcript
            .context()
            .flat_map(|(_, entry)| entry.blocks.iter().map(move |block| (entry.role, block)));
        let texts_read = blocks.filter_map(|(role, block)| match block {
            Block::Text(text) => Some((role, text.read(source).into_owned())),
            Block::Output(output) => Some((role, output.text(source))),
            _ => None,
        });
        texts_read.collect()
    };
    let before = every_block();
    let expect = texts(before.transcript(), before.source());
    assert_eq!(texts(&document.transcript, &document.source), expect);
}

#[test]
fn the_detail_does_not_matter() {
    let at = |detail| with_story(&every_block(), detail, |story| json(story, &[]));
    let (all, few) = (at(Detail::Full), at(Detail::Conversation));
    let entries = |text: &str| from_json(text.as_bytes()).expect("a transcript").transcript;
    assert_eq!(entries(&all), entries(&few));
}

#[test]
fn texts_of_another_kind_and_of_newer_versions_are_refused() {
    for (text, newer) in [
        ("", false),
        ("{}", false),
        (r#"{"epitome_transcript":1}"#, false),
        (r#"{"epitome_transcript":999}"#, true),
    ] {
        let err = from_json(text.as_bytes()).expect_err("it is refused");
        assert_eq!(matches!(err, JsonError::Newer(999)), newer, "{text}");
    }
}

#[test]
fn sub_agents_are_written_behind_their_session() {
    let text = with_story(&every_block(), Detail::Steps, |story| {
        with_story(&samples::Sample::new().user("Help."), Detail::Steps, |part| {
            json(story, &[Story::new(part.session)])
        })
    });
    let document = from_json(text.as_bytes()).expect("a transcript");
    assert_eq!(document.sub_agents.len(), 1);
    assert_eq!(document.sub_agents[0].transcript.entries().count(), 1);
}
