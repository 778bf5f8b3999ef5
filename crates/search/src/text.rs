//! Texts of messages as the index stores them: long ones are compressed.

use std::borrow::Cow;

use rusqlite::types::{FromSqlError, FromSqlResult, Value, ValueRef};

/// The length in bytes from which on compression saves more than it costs.
const COMPRESSED: usize = 256;
/// The level of zstd: a higher one makes the index slower but hardly smaller.
const LEVEL: i32 = 1;
/// The maximum length in bytes of a decompressed text. No stored text is longer, because
/// `epitome_render` truncates texts at 512 KiB.
const LONGEST: usize = 16 << 20;

/// A text as it is stored: as compressed bytes if it is long and compression makes it shorter;
/// otherwise plain.
pub(super) fn stored(text: &str) -> Value {
    if text.len() >= COMPRESSED
        && let Ok(compressed) = zstd::bulk::compress(text.as_bytes(), LEVEL)
        && compressed.len() < text.len()
    {
        return Value::Blob(compressed);
    }
    Value::Text(text.to_owned())
}

/// Decodes a stored text.
///
/// # Errors
///
/// If the value cannot be decoded: then the index is damaged.
pub(super) fn read(stored: ValueRef<'_>) -> FromSqlResult<Cow<'_, str>> {
    let ValueRef::Blob(compressed) = stored else { return Ok(Cow::Borrowed(stored.as_str()?)) };
    let bytes = zstd::bulk::decompress(compressed, LONGEST)
        .map_err(|err| FromSqlError::Other(Box::new(err)))?;
    let text = String::from_utf8(bytes).map_err(|err| FromSqlError::Other(Box::new(err)))?;
    Ok(Cow::Owned(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_it_was_stored() {
        let long = "漢字 and letters\0 ".repeat(100);
        for text in ["", "short", &*long] {
            let value = stored(text);
            assert_eq!(read(ValueRef::from(&value)).expect("a text"), text);
        }
        let Value::Blob(mut compressed) = stored(&long) else { panic!("it is long") };
        assert!(compressed.len() * 4 < long.len(), "{}", compressed.len());
        compressed.truncate(20);
        assert!(read(ValueRef::Blob(&compressed)).is_err());
    }
}
