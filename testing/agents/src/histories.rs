//! What the tests of the packages for Python and Node get for their random histories: the numbers
//! of the histories, and reasoning that the model server has signed.

use std::ops::Range;

use model_server::sign;
use serde_json::json;

/// How many histories are sent to one server, which keeps every request in memory.
const PIECE: u64 = 1_000;

/// The numbers of histories, a thousand at a time: `10000` stands for the first ten thousand, and
/// `4000..10000` for those from number 4,000.
///
/// ```
/// let pieces: Vec<_> = agents::histories::thousands("2500").expect("numbers").collect();
/// assert_eq!(pieces, [0..1_000, 1_000..2_000, 2_000..2_500]);
/// let pieces: Vec<_> = agents::histories::thousands("1500..3000").expect("numbers").collect();
/// assert_eq!(pieces, [1_500..2_500, 2_500..3_000]);
/// ```
///
/// # Errors
///
/// If `numbers` is neither.
pub fn thousands(numbers: &str) -> anyhow::Result<impl Iterator<Item = Range<u64>> + use<>> {
    let (first, end) = numbers.split_once("..").unwrap_or(("0", numbers));
    let (first, end): (u64, u64) = (first.parse()?, end.parse()?);
    let starts = (first..end).step_by(PIECE as usize);
    Ok(starts.map(move |start| start..end.min(start + PIECE)))
}

/// Reasoning that the model server has signed: texts and their signatures, as JSON. Only the server
/// can sign, so that tests in other languages get these in the variable [`THOUGHTS`].
pub(crate) fn thoughts() -> String {
    let thought = |n: usize| {
        let text = "The file has to be read before it is changed. ".repeat(1 + n * n);
        let text = format!("Thought {n}. {}", text.trim_end());
        let signature = sign(&text);
        [text, signature]
    };
    json!((0..12).map(thought).collect::<Vec<_>>()).to_string()
}

/// The variable with [`thoughts`].
pub(crate) const THOUGHTS: &str = "TEST_THOUGHTS";

/// The variables by which tests in any language get the numbers.
pub(crate) fn variables(range: &Range<u64>) -> [(&'static str, String); 2] {
    let count = range.end - range.start;
    [("TEST_FIRST", range.start.to_string()), ("TEST_HISTORIES", count.to_string())]
}
