use std::fs;
use std::path::Path;

use super::*;

fn frame(plain: &[u8]) -> Vec<u8> {
    zstd::encode_all(plain, LEVEL).expect("it is compressed")
}

fn file(folder: &Path, bytes: &[u8]) -> FileSource {
    let path = folder.join("rollout.jsonl.zst");
    fs::write(&path, bytes).expect("a file");
    FileSource::open(&path).expect("a file")
}

fn text(source: &FileSource) -> String {
    String::from_utf8(source.read(0..source.len()).into_owned()).expect("text")
}

#[test]
fn frames_are_read_one_behind_the_other() {
    let dir = tempfile::tempdir().expect("a folder");
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let long = "long ".repeat(500_000);
    let (one, two) = (frame(b"one\n"), frame(long.as_bytes()));
    let all = [&one[..], &skipped, &two, &frame(b"")].concat();
    let file = file(dir.path(), &all);
    assert!(is_compressed(&file).expect("it is read"));
    let (plain, Frames(frames)) = open(&file, LIMIT).expect("it is whole");
    assert_eq!(text(&plain), format!("one\n{long}"));
    let len = plain.len();
    let ends = frames.iter().map(|frame| (frame.end as usize, frame.plain)).collect::<Vec<_>>();
    let second = one.len() + skipped.len();
    let expect = [(one.len(), 4), (second, 4), (second + two.len(), len), (all.len(), len)];
    assert_eq!(ends, expect);
}

#[test]
fn what_is_damaged_or_torn_or_too_long_is_not_read() {
    let dir = tempfile::tempdir().expect("a folder");
    let whole = frame("word ".repeat(1_000).as_bytes());
    let cases: [(&[u8], u64, &str); 3] = [
        (&whole[..whole.len() - 1], 5_000, "the compressed session is torn: its end is missing"),
        (&[&whole[..], b"{\"a\":1}"].concat(), 9_000, "the compressed session is damaged"),
        (&whole, 4_999, "the compressed session holds more than 5.0 KB"),
    ];
    for (bytes, limit, expect) in cases {
        let err = open(&file(dir.path(), bytes), Bytes(limit)).expect_err(expect);
        assert_eq!(err.kind(), ErrorKind::Unreadable);
        assert!(err.to_string().starts_with(expect), "{err}");
    }
    assert!(open(&file(dir.path(), &whole), Bytes(5_000)).is_ok());
}

/// The compressed file after its content was replaced.
fn replaced(folder: &Path, bytes: &[u8], after: &str) -> Vec<u8> {
    let file = file(folder, bytes);
    let (before, frames) = open(&file, LIMIT).expect("it is whole");
    let (kept, added) =
        compress(&frames, &before, &after.as_bytes()).expect("it can be compressed");
    [&bytes[..kept as usize], &added].concat()
}

#[test]
fn what_is_appended_is_a_frame_of_its_own_and_goes_without_a_trace() {
    let dir = tempfile::tempdir().expect("a folder");
    // Another program may use another compression level than epitome.
    let first = zstd::encode_all(&b"one\ntwo\n"[..], 19).expect("it is compressed");
    for original in [first.clone(), [&first[..], &frame(b"")].concat()] {
        let longer = replaced(dir.path(), &original, "one\ntwo\nthree\n");
        assert!(longer.starts_with(&original) && longer.len() > original.len());
        assert_eq!(zstd::decode_all(&longer[..]).expect("whole"), b"one\ntwo\nthree\n");
        assert_eq!(replaced(dir.path(), &longer, "one\ntwo\n"), original);
        let other = replaced(dir.path(), &longer, "one\nTWO\n");
        assert_eq!(zstd::decode_all(&other[..]).expect("whole"), b"one\nTWO\n");
    }
}
