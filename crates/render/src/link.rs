//! Checks the links in a session's text.

/// Whether a link has a scheme that is safe to follow. Other schemes may run a script or open a
/// file.
pub(crate) fn is_safe(address: &str) -> bool {
    ["https://", "http://", "mailto:"].into_iter().any(|scheme| {
        address.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_and_mail_are_safe() {
        for safe in ["https://e.com", "HTTP://e.com", "mailto:a@e.com"] {
            assert!(is_safe(safe), "{safe}");
        }
        for unsafe_one in [
            "javascript:alert(1)",
            " javascript:x",
            "data:text/html,x",
            "file:///etc",
            "a.html",
            "//e.com",
            "",
        ] {
            assert!(!is_safe(unsafe_one), "{unsafe_one}");
        }
    }
}
