//! Short ids of sessions.

/// The minimum number of characters of a short id.
const LEAST: usize = 8;

/// For each id, its shortest unique beginning of at least eight characters. Commands accept it in
/// place of the id. Ids of pi begin with the time, so eight characters are often not enough.
///
/// ```
/// let ids = ["0f3c9a52-7d1e", "2026-11-18T12", "2026-11-18T13"];
/// let short = epitome::list::short_ids(&ids);
/// assert_eq!(short, ["0f3c9a52", "2026-11-18T12", "2026-11-18T13"]);
/// ```
pub fn short_ids(ids: &[&str]) -> Vec<String> {
    let mut order: Vec<usize> = (0..ids.len()).collect();
    // In sorted order, ids with a long common beginning are next to each other.
    order.sort_by_key(|&at| ids[at]);
    let mut short = vec![String::new(); ids.len()];
    for (place, &at) in order.iter().enumerate() {
        let adjacent = [place.checked_sub(1), Some(place + 1)];
        let adjacent = adjacent.into_iter().flatten().filter_map(|place| order.get(place));
        let alike = adjacent.map(|&other| alike(ids[at], ids[other])).max().unwrap_or(0);
        short[at] = ids[at].chars().take((alike + 1).max(LEAST)).collect();
    }
    short
}

/// The number of characters with which both ids begin.
fn alike(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count()
}
