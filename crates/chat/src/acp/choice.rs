//! The options that the user may set in the editor: the model, and the recipe.

use serde_json::{Value, json};

use super::wire::SetOption;
use crate::machine::OutsideChange;

const MODEL: &str = "model";
const RECIPE: &str = "recipe";

/// The options, and their current values.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// The model that answers, as PROVIDER/MODEL.
    pub model: String,
    /// Models to choose from.
    pub models: Vec<String>,
    /// The recipe.
    pub recipe: String,
    /// Recipes to choose from.
    pub recipes: Vec<String>,
}

impl Choices {
    /// The options as JSON of the protocol.
    pub(super) fn options(&self) -> Value {
        let about = "How the context is kept small";
        json!([
            {
                "id": MODEL, "name": "Model", "category": MODEL, "type": "select",
                "currentValue": self.model, "options": options(&self.model, &self.models),
            },
            {
                "id": RECIPE, "name": "Recipe", "description": about, "type": "select",
                "currentValue": self.recipe, "options": options(&self.recipe, &self.recipes),
            },
        ])
    }
}

/// The possible values of an option. The current value, `now`, comes first if `all` lacks it.
fn options(now: &str, all: &[String]) -> Vec<Value> {
    let is_listed = all.iter().any(|name| name == now);
    let others = all.iter().map(String::as_str);
    let names = (!is_listed).then_some(now).into_iter().chain(others);
    names.map(|name| json!({"value": name, "name": name})).collect()
}

/// The change that a request to set an option asks for.
///
/// # Errors
///
/// The reason, if the value is not a string or the option is unknown.
pub(super) fn change(request: &SetOption) -> Result<OutsideChange, String> {
    let Some(value) = request.value.as_str() else {
        return Err(format!("{} takes a name", request.config_id));
    };
    let value = Some(value.to_owned());
    match &*request.config_id {
        MODEL => Ok(OutsideChange::Model(value)),
        RECIPE => Ok(OutsideChange::Recipe(value)),
        other => Err(format!("there is no option {other}")),
    }
}
