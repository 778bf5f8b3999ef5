//! Text that the user put between marks.

/// The mark before a text that has to stay.
pub const OPEN: &str = "<pin>";
/// The mark behind it.
pub const CLOSE: &str = "</pin>";

/// The texts between marks, in their order. A mark without its end is text like any other.
pub fn between_marks(text: &str) -> impl Iterator<Item = &str> {
    text.split(OPEN).skip(1).filter_map(|part| Some(part.split_once(CLOSE)?.0.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_between_two_marks_is_taken() {
        for (text, expect) in [
            ("a <pin>b</pin> c <pin>\nd\n</pin>", vec!["b", "d"]),
            ("a <pin>b", vec![]),
            ("a </pin> b <pin>c", vec![]),
            ("<pin>a <pin>b</pin> c</pin>", vec!["b"]),
            ("", vec![]),
        ] {
            assert_eq!(between_marks(text).collect::<Vec<_>>(), expect, "{text}");
        }
    }
}
