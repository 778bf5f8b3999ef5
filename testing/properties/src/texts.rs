//! Small readers: JSON, stubs, recipes.

use epitome_json::{Cursor, check};
use epitome_model::{Stub, is_left_by_recipe};
use epitome_passes::Recipe;

/// Reads any bytes as JSON. They must be accepted or refused without a panic, and a cursor must be
/// able to walk what is accepted.
///
/// # Panics
///
/// If that does not hold.
pub fn json(bytes: &[u8]) {
    let Ok(()) = check(bytes) else { return };
    let mut cursor = Cursor::new(bytes);
    let whole = cursor.skip().expect("what is accepted is gone past");
    assert!(whole.end <= bytes.len(), "a value ends within the text");
    assert!(cursor.end().is_ok(), "nothing but white space follows the value");
    let members = Cursor::new(bytes).object(|member, key| {
        let inside = |part: &[u8]| bytes.as_ptr_range().contains(&part.as_ptr());
        assert!(key.is_empty() || inside(key), "a key stands in the text");
        let value = member.skip()?;
        assert!(whole.start < value.start && value.end < whole.end, "a member stands inside");
        Ok(())
    });
    assert!(members.is_ok(), "what is accepted is walked");
}

/// Parses any text as a stub. If it is one, the stub must be printed as the same text, and
/// [`is_left_by_recipe`] must be true for it.
///
/// # Panics
///
/// If that does not hold.
pub fn stub(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(stub) = Stub::parse(&text) {
        assert_eq!(stub.to_string(), text, "printing and parsing are inverse");
        assert!(is_left_by_recipe(&text), "a stub is left by a recipe");
    }
    // Called for any text, because epitome calls it for every text of a session: it must not panic.
    let _ = is_left_by_recipe(&text);
}

/// Reads any text as a recipe. It must be parsed, or refused with a reason.
///
/// # Panics
///
/// If that does not hold.
pub fn recipe(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err(err) = Recipe::parse(&text) {
        assert!(!err.to_string().is_empty(), "an error says something");
    }
}
