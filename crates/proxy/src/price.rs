//! What a provider's cache costs, and how long it keeps a prefix.

use std::time::Duration;

use epitome_llm::Price;
use epitome_model::MicroDollars;

/// How long providers usually keep a prefix in their cache after it was last read, unless they are
/// asked to keep it longer.
pub(crate) const TIME_TO_LIVE: Duration = Duration::from_mins(5);

/// Prices in the proportions that most providers have, for models whose price is not known.
pub(crate) const USUAL: Price = Price {
    input: MicroDollars(1_000_000),
    cached: MicroDollars(100_000),
    written: MicroDollars(1_250_000),
    output: MicroDollars(5_000_000),
};
