//! The arguments of a call.

use serde_json::{Map, Value};

use crate::tool::{ParameterKind, Tool};

/// The arguments of a call, which were checked against the parameters of the tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Arguments(Map<String, Value>);

/// Why a call is not carried out: its arguments are wrong. The text is for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadArguments(String);

impl Arguments {
    /// Checks the arguments of a call.
    ///
    /// # Errors
    ///
    /// When a required argument is missing, when an argument has the wrong type, or when the tool
    /// does not have an argument that was given.
    pub(crate) fn of_call(
        tool: Tool,
        given: Map<String, Value>,
    ) -> Result<Arguments, BadArguments> {
        for parameter in tool.parameters().filter(|parameter| parameter.is_required) {
            if !given.contains_key(parameter.name) {
                return Err(BadArguments(format!("`{}` is missing", parameter.name)));
            }
        }
        let mut taken = Map::new();
        for (name, value) in given {
            let Some(parameter) = tool.parameters().find(|parameter| parameter.name == name) else {
                let known: Vec<&str> = tool.parameters().map(|parameter| parameter.name).collect();
                let known = known.join(", ");
                return Err(BadArguments(format!("unknown argument `{name}`; known: {known}")));
            };
            // Some models send `null` for what they leave out.
            if value.is_null() && !parameter.is_required {
                continue;
            }
            let is_right = match parameter.kind {
                ParameterKind::Text => value.is_string(),
                ParameterKind::Number => value.as_u64().is_some(),
            };
            if !is_right {
                let kind = match parameter.kind {
                    ParameterKind::Text => "a string",
                    ParameterKind::Number => "a whole number",
                };
                return Err(BadArguments(format!("`{name}` must be {kind}")));
            }
            taken.insert(name, value);
        }
        Ok(Arguments(taken))
    }

    /// The text of a required argument, which may be empty.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.optional_text(name).unwrap_or_default()
    }

    /// The text of an optional argument; `None` if it was left out or is empty.
    pub(crate) fn optional_text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// The number of an optional argument, but at most `most`. Returns `usual` if the argument was
    /// left out.
    pub(crate) fn number(&self, name: &str, usual: usize, most: usize) -> usize {
        let number = self.0.get(name).and_then(Value::as_u64);
        number.map_or(usual, |number| usize::try_from(number).unwrap_or(most).min(most))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(given: Value, expect: Result<Value, &str>) {
        let Value::Object(given) = given else { panic!("an object") };
        let found = Arguments::of_call(Tool::Search, given);
        let found = found.map(|found| Value::Object(found.0)).map_err(|err| err.to_string());
        assert_eq!(found, expect.map_err(str::to_owned));
    }

    #[test]
    fn arguments_have_the_types_of_the_schema() {
        check(json!({"query": "a", "limit": 3}), Ok(json!({"query": "a", "limit": 3})));
        check(json!({"query": "a", "limit": null}), Ok(json!({"query": "a"})));
        check(json!({}), Err("`query` is missing"));
        check(json!({"query": null}), Err("`query` must be a string"));
        check(json!({"query": "a", "limit": -1}), Err("`limit` must be a whole number"));
        let known = "unknown argument `path`; known: query, limit, cursor";
        check(json!({"query": "a", "path": "x"}), Err(known));
    }
}
