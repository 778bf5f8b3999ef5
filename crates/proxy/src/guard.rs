//! Access control: on an address that other machines reach, a request must have the token of this
//! run as the first part of its path.

use subtle::ConstantTimeEq as _;

/// The path of a request without the token: with its query, and beginning with a slash.
///
/// `None` if the proxy has a token and the request has another one or none.
pub(crate) fn without_token<'p>(token: Option<&str>, path_and_query: &'p str) -> Option<&'p str> {
    let Some(token) = token else { return Some(path_and_query) };
    let path = path_and_query.strip_prefix('/')?;
    let end = path.find(['/', '?']).unwrap_or(path.len());
    let (found, rest) = path.split_at(end);
    let is_same = bool::from(found.as_bytes().ct_eq(token.as_bytes()));
    let rest = if rest.is_empty() { "/" } else { rest };
    (is_same && rest.starts_with('/')).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_the_first_part_of_the_path() {
        for (path, expect) in [
            ("/00ff/v1/messages?beta=true", Some("/v1/messages?beta=true")),
            ("/00ff", Some("/")),
            ("/00ff?a", None),
            ("/00fe/v1/messages", None),
            ("/v1/messages", None),
            ("//00ff/", None),
        ] {
            assert_eq!(without_token(Some("00ff"), path), expect, "{path}");
        }
        assert_eq!(without_token(None, "/v1/messages"), Some("/v1/messages"));
    }
}
