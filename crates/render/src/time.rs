//! Parses times of sessions, and formats times for display.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// Parses a time of a session: RFC 3339, or seconds or milliseconds since 1970. `None` for other
/// texts.
pub fn parse(text: &str) -> Option<Timestamp> {
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    let number: i64 = text.parse().ok()?;
    let time = match number {
        // Smaller numbers are seconds, up to the year 5138; others are milliseconds, from 1973 on.
        ..100_000_000_000 => Timestamp::from_second(number),
        _ => Timestamp::from_millisecond(number),
    };
    time.ok()
}

/// A time as pages show it, in UTC: `2026-11-21 18:52`.
pub fn display(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M").to_string()
}

/// The date of a time, in UTC: `2026-11-21`.
pub(crate) fn date(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).date().to_string()
}

/// The time of day, in UTC: `18:52`.
pub(crate) fn clock(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%H:%M").to_string()
}

/// Maximum time between two records; a longer time is a pause.
pub(crate) const PAUSE: SignedDuration = SignedDuration::from_mins(5);

/// The sum of the times between records, without pauses. `None` if it is zero: with fewer than two
/// records, or with only pauses between them.
pub(crate) fn active(mut times: Vec<Timestamp>) -> Option<SignedDuration> {
    times.sort_unstable();
    let gaps = times.windows(2).map(|pair| pair[1].duration_since(pair[0]));
    let sum: SignedDuration = gaps.filter(|gap| *gap <= PAUSE).sum();
    (!sum.is_zero()).then_some(sum)
}

/// A duration: `under 1s`, `40s`, `3m 40s`, `2h 5m`, `3d 4h`.
pub(crate) fn length(time: SignedDuration) -> String {
    let seconds = time.as_secs().max(0);
    let days = seconds / 86_400;
    let hours = seconds / 3_600 % 24;
    let minutes = seconds / 60 % 60;
    let seconds = seconds % 60;
    match (days, hours, minutes, seconds) {
        (0, 0, 0, 0) => "under 1s".to_owned(),
        (0, 0, 0, s) => format!("{s}s"),
        (0, 0, m, s) => format!("{m}m {s}s"),
        (0, h, m, _) => format!("{h}h {m}m"),
        (d, h, ..) => format!("{d}d {h}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_every_agent_are_read() {
        for text in ["2026-11-21T18:52:04.123Z", "1795287124123", "1795287124"] {
            assert_eq!(parse(text).map(display).as_deref(), Some("2026-11-21 18:52"), "{text}");
        }
        assert_eq!(parse("soon"), None);
        assert_eq!(parse("999999999999999999999"), None);
    }

    #[test]
    fn a_length_has_two_units_at_most() {
        let cases = [
            (-5, "under 1s"),
            (0, "under 1s"),
            (4, "4s"),
            (220, "3m 40s"),
            (3_600, "1h 0m"),
            (7_559, "2h 5m"),
            (3 * 86_400 + 4 * 3_600 + 9, "3d 4h"),
        ];
        for (seconds, expect) in cases {
            assert_eq!(length(SignedDuration::from_secs(seconds)), expect, "{seconds}");
        }
    }

    #[test]
    fn pauses_are_not_active_and_the_order_of_records_does_not_matter() {
        let check = |seconds: &[i64], expect: Option<i64>| {
            let at = |seconds: &i64| Timestamp::from_second(*seconds).expect("a time");
            let found = active(seconds.iter().map(at).collect());
            assert_eq!(found, expect.map(SignedDuration::from_secs), "{seconds:?}");
        };
        check(&[0, 300, 601, 611], Some(310));
        check(&[611, 0, 601, 300], Some(310));
        check(&[0, 301], None);
        check(&[7], None);
        check(&[], None);
    }

    #[test]
    fn times_are_shown_in_utc() {
        let time = parse("2026-11-21T01:02:03+02:00").expect("a time");
        let all = [display(time), date(time), clock(time)];
        assert_eq!(all, ["2026-11-20 23:02", "2026-11-20", "23:02"]);
    }
}
