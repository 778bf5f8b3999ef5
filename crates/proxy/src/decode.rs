//! Decodes a compressed body as it is passed on, so that its text can be read.

use std::io::{self, Write as _};

use hyper::header::{CONTENT_ENCODING, HeaderMap};

/// Decodes a body with one encoding, from one chunk of bytes to the next.
pub(crate) enum Decoder {
    Plain,
    Gzip(Box<flate2::write::GzDecoder<Vec<u8>>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Vec<u8>>>),
}

impl Decoder {
    /// A decoder for a body with these headers; `None` if its encoding is not known.
    pub(crate) fn for_headers(headers: &HeaderMap) -> Option<Decoder> {
        let encoding = headers.get(CONTENT_ENCODING).map(|value| value.as_bytes());
        match encoding {
            None | Some(b"identity") => Some(Decoder::Plain),
            Some(b"gzip" | b"x-gzip") => {
                Some(Decoder::Gzip(Box::new(flate2::write::GzDecoder::new(Vec::new()))))
            }
            Some(b"zstd") => {
                let decoder = zstd::stream::write::Decoder::new(Vec::new()).ok()?;
                Some(Decoder::Zstd(Box::new(decoder)))
            }
            Some(_) => None,
        }
    }

    /// Decodes the next bytes, and passes the decoded bytes to `take`.
    ///
    /// # Errors
    ///
    /// If the bytes are not of this encoding.
    pub(crate) fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let decoded = match self {
            Decoder::Plain => {
                take(bytes);
                return Ok(());
            }
            Decoder::Gzip(decoder) => {
                decoder.write_all(bytes)?;
                decoder.flush()?;
                decoder.get_mut()
            }
            Decoder::Zstd(decoder) => {
                decoder.write_all(bytes)?;
                decoder.flush()?;
                decoder.get_mut()
            }
        };
        take(decoded);
        decoded.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes a body that arrives in chunks of this many bytes.
    fn decoded(encoding: &str, body: &[u8], piece: usize) -> Option<Vec<u8>> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, encoding.parse().expect("a value"));
        let mut decoder = Decoder::for_headers(&headers)?;
        let mut found = Vec::new();
        for bytes in body.chunks(piece) {
            decoder.push(bytes, &mut |bytes| found.extend_from_slice(bytes)).ok()?;
        }
        Some(found)
    }

    #[test]
    fn bodies_are_decoded_in_any_pieces() {
        let text = b"data: {\"type\":\"message_start\"}\n\n".repeat(300);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).expect("memory");
        let gzip = gzip.finish().expect("memory");
        let zstd = zstd::encode_all(text.as_slice(), 1).expect("memory");
        for piece in [1, 7, 100_000] {
            assert!(decoded("gzip", &gzip, piece).as_ref() == Some(&text), "gzip {piece}");
            assert!(decoded("zstd", &zstd, piece).as_ref() == Some(&text), "zstd {piece}");
            assert!(decoded("identity", &text, piece).as_ref() == Some(&text), "plain {piece}");
        }
        assert_eq!(decoded("br", &text, 10), None);
        assert_eq!(decoded("gzip", &text, 10), None);
    }
}
