//! A tool that is offered to a model.

use epitome_model::encode;

/// A tool with one argument, a text that may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it does and when to call it.
    pub about: &'a str,
    /// The name of its argument.
    pub argument: &'a str,
    /// What that is.
    pub argument_about: &'a str,
}

impl Offer<'_> {
    /// The JSON Schema of its arguments.
    pub fn schema(&self) -> String {
        let (argument, about) = (encode(self.argument), encode(self.argument_about));
        let text = format!(r#"{{"type":"string","description":{about}}}"#);
        format!(r#"{{"type":"object","properties":{{{argument}:{text}}}}}"#)
    }
}
