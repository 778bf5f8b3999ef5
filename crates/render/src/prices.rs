//! List prices, provided by the caller.

use epitome_model::{MicroDollars, RecordedUsage};

/// The list prices of models.
pub trait Prices: Sync {
    /// The cost of the recorded tokens of a request; `None` if the price of the model is unknown,
    /// or if the usage does not say how many input tokens were cached. Output that is not recorded
    /// (0) costs nothing here.
    fn cost(&self, model: &str, usage: &RecordedUsage) -> Option<MicroDollars>;

    /// The day of the prices, such as `2026-11-20`.
    fn date(&self) -> &str;
}
