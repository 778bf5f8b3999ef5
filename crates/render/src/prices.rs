//! List prices, as the caller knows them.

use epitome_model::{MicroDollars, Usage};

/// What requests cost at list prices.
pub trait Prices: Sync {
    /// What the recorded tokens of one request to a model cost; nothing if its price, or what of
    /// its tokens had to do with a cache, is not known. Output that is not recorded (0) costs
    /// nothing here.
    fn cost(&self, model: &str, usage: &Usage) -> Option<MicroDollars>;

    /// The day of the prices: `2026-11-20`.
    fn date(&self) -> &str;
}
