//! Times as sessions write them.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A time in RFC 3339, and as it is shown. Sessions write RFC 3339, or milliseconds since 1970.
pub fn parse(text: &str) -> Option<Timestamp> {
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    let number: i64 = text.parse().ok()?;
    let time = match number {
        // Seconds up to the year 5138, milliseconds from 1973 on.
        ..100_000_000_000 => Timestamp::from_second(number),
        _ => Timestamp::from_millisecond(number),
    };
    time.ok()
}

/// `2026-11-21 18:52`, in UTC.
pub(crate) fn shown(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M").to_string()
}

/// `2026-11-21`, in UTC.
pub(crate) fn date(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).date().to_string()
}

/// `18:52`, in UTC.
pub(crate) fn clock(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%H:%M").to_string()
}

/// How long: `4m`, `2h 5m`, `3d 4h`.
pub(crate) fn length(from: Timestamp, to: Timestamp) -> String {
    let minutes = to.duration_since(from).as_secs().max(0) / 60;
    match (minutes / 1440, minutes / 60 % 24, minutes % 60) {
        (0, 0, 0) => "under a minute".to_owned(),
        (0, 0, m) => format!("{m}m"),
        (0, h, m) => format!("{h}h {m}m"),
        (d, h, _) => format!("{d}d {h}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_every_agent_are_read() {
        for text in ["2026-11-21T18:52:04.123Z", "1795287124123", "1795287124"] {
            assert_eq!(parse(text).map(shown).as_deref(), Some("2026-11-21 18:52"), "{text}");
        }
        assert_eq!(parse("soon"), None);
        assert_eq!(parse("999999999999999999999"), None);
    }

    #[test]
    fn a_length_has_two_units_at_most() {
        let minutes = |n: i64| {
            let at = |minutes: i64| Timestamp::from_second(minutes * 60).expect("a time");
            length(at(1_000_000), at(1_000_000 + n))
        };
        let cases = [
            (-5, "under a minute"),
            (0, "under a minute"),
            (4, "4m"),
            (60, "1h 0m"),
            (125, "2h 5m"),
            (3 * 1440 + 250, "3d 4h"),
        ];
        for (n, expect) in cases {
            assert_eq!(minutes(n), expect, "{n}");
        }
    }

    #[test]
    fn times_are_shown_in_utc() {
        let time = parse("2026-11-21T01:02:03+02:00").expect("a time");
        let all = [shown(time), date(time), clock(time)];
        assert_eq!(all, ["2026-11-20 23:02", "2026-11-20", "23:02"]);
    }
}
