//! What a run may cost.

use epitome_llm::Catalogue;
use epitome_model::MicroDollars;

/// Why the budget of a run does not allow a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OverBudget {
    /// The budget is spent.
    Spent {
        /// The budget.
        budget: MicroDollars,
        /// What the requests so far cost.
        spent: MicroDollars,
        /// How much of `spent` is estimated, because the service reported no count.
        estimated: MicroDollars,
    },
    /// The price of the model is not known, or the request names no model.
    NoPrice {
        /// The model, if the request names one.
        model: Option<String>,
    },
}

impl std::fmt::Display for OverBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OverBudget::Spent { budget, spent, estimated } => {
                write!(f, "the budget of this run is spent: {spent} of {budget} at list prices")?;
                if *estimated > MicroDollars(0) {
                    write!(f, ", {estimated} of it estimated")?;
                }
                write!(
                    f,
                    ". To go on, end the agent and continue the conversation with a larger \
                     --budget, or with none"
                )
            }
            OverBudget::NoPrice { model } => {
                let model = model.as_deref().unwrap_or("a model that is not named");
                write!(
                    f,
                    "the price of {model} is not known, so a budget cannot be kept. To go on, add \
                     its price to models.toml, use another model, or start without --budget"
                )
            }
        }
    }
}

/// What a run has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spending {
    /// The cost of requests whose tokens the service counted, at list prices.
    pub(crate) counted: MicroDollars,
    /// The cost of requests whose tokens were not counted, estimated by their length.
    pub(crate) estimated: MicroDollars,
}

impl Spending {
    /// Checks whether a request may start, before it is read.
    ///
    /// # Errors
    ///
    /// [`OverBudget::Spent`] if the requests so far cost at least `budget`.
    pub(crate) fn check(self, budget: MicroDollars) -> Result<(), OverBudget> {
        let Spending { counted, estimated } = self;
        let spent = counted + estimated;
        if spent < budget { Ok(()) } else { Err(OverBudget::Spent { budget, spent, estimated }) }
    }
}

/// Checks whether the cost of a request will be known.
///
/// # Errors
///
/// [`OverBudget::NoPrice`] if the request names no model, or if the price of the model is not
/// known.
pub(crate) fn check_price(prices: &Catalogue, model: Option<&str>) -> Result<(), OverBudget> {
    match model.and_then(|model| prices.find(model)) {
        Some(_) => Ok(()),
        None => Err(OverBudget::NoPrice { model: model.map(str::to_owned) }),
    }
}
