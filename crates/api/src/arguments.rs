//! Finds the target and the bulky fields in the arguments of a call, by a table of tools.

use std::ops::Range;

use epitome_json::{Cursor, Kind, MalformedJson};
use epitome_model::{Call, Field, FieldRole, Span, Text, ToolKind};

/// A row of the table: some tools of one kind, and the roles of their arguments.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The names of the tools, separated by spaces. Upper and lower case are not distinguished.
    pub names: &'static str,
    /// What the tools do.
    pub kind: ToolKind,
    /// The roles of the tools' arguments.
    pub roles: Roles,
}

impl Rule {
    /// The rule for tools with these names, separated by spaces.
    pub const fn new(names: &'static str, kind: ToolKind, roles: Roles) -> Rule {
        Rule { names, kind, roles }
    }

    /// The first rule for a tool with this name; `None` if there is none.
    pub fn find<'r>(rules: &'r [Rule], name: &str) -> Option<&'r Rule> {
        rules.iter().find(|rule| {
            let mut names = rule.names.split_ascii_whitespace();
            names.any(|own| own.eq_ignore_ascii_case(name))
        })
    }
}

/// The roles of a tool's arguments, by name. Names are separated by spaces; `edits[].old` is the
/// member `old` of each element of the array `edits`.
#[derive(Clone, Copy, Debug)]
pub struct Roles {
    /// The names of the arguments that may hold the target, the first choice first.
    target: &'static str,
    /// The names of the arguments that select a part of the target.
    part: &'static str,
    /// The roles of arguments that may be bulky, each with the names of these arguments.
    fields: [(FieldRole, &'static str); 3],
}

impl Roles {
    /// For tools whose arguments have no roles.
    pub const NONE: Roles = Roles { target: "", part: "", fields: [(FieldRole::Other, ""); 3] };

    /// Roles with a target: the first of the arguments `names` that is present.
    pub const fn target(names: &'static str) -> Roles {
        Roles { target: names, ..Roles::NONE }
    }

    /// Adds the arguments that select a part of the target.
    pub const fn part(self, names: &'static str) -> Roles {
        Roles { part: names, ..self }
    }

    /// Adds a role, and the arguments that have it and may be bulky.
    ///
    /// # Panics
    ///
    /// If three roles were added before.
    pub const fn field(self, role: FieldRole, names: &'static str) -> Roles {
        let [first, second, third] = self.fields;
        assert!(third.1.is_empty(), "more than three roles");
        Roles { fields: [(role, names), first, second], ..self }
    }

    /// The rank of an argument among the arguments that may hold the target, from 0 for the first
    /// choice; `None` if the argument may not hold it.
    pub fn target_rank(&self, name: &str) -> Option<usize> {
        self.target.split_ascii_whitespace().position(|target| target == name)
    }

    /// The role of an argument that may be bulky; `None` for every other argument.
    pub fn role(&self, name: &str) -> Option<FieldRole> {
        let named = self.fields.iter().find(|(_, names)| has(names, name));
        named.map(|(role, _)| *role)
    }
}

fn has(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|own| own == name)
}

/// What a call's name and arguments say about it.
pub struct ClassifiedCall {
    /// The kind of the tool.
    pub kind: ToolKind,
    /// What the call works on, for example a file.
    pub target: Option<Text>,
    /// The arguments that select a part of the target, as `offset=3;limit=9;`; `None` if there are
    /// none.
    pub part: Option<Box<str>>,
    /// The bulky arguments.
    pub fields: Vec<Field>,
}

impl ClassifiedCall {
    /// Makes a call with this id and name. `arguments` is the span of its arguments in the source.
    pub fn into_call(self, id: Box<str>, name: Box<str>, arguments: Span) -> Call {
        let ClassifiedCall { kind, target, part, fields } = self;
        Call { id, name, kind, target, part, fields, arguments }
    }
}

/// Classifies a call by the rule in `rules` for its name. `arguments` is the range of the arguments
/// in `line`, and `base` the offset of `line` in the source.
///
/// A tool without a rule is [`ToolKind::Other`]. Its bulky fields are all arguments that are
/// strings, and the strings in the objects of an argument that is a list. Its target is the first
/// argument that is a string or, if there is none, the first string in such an object.
pub fn classify(
    rules: &[Rule],
    name: &str,
    line: &[u8],
    arguments: &Range<usize>,
    base: u64,
) -> ClassifiedCall {
    known_at(rules, name, line, arguments, &|place| Span {
        start: base + place.start as u64,
        end: base + place.end as u64,
    })
}

/// Like [`classify`], for arguments in a text that was decoded from the source. `span` returns the
/// span in the source of a range of `text`.
pub fn known_at(
    rules: &[Rule],
    name: &str,
    text: &[u8],
    arguments: &Range<usize>,
    span: &dyn Fn(&Range<usize>) -> Span,
) -> ClassifiedCall {
    let rule = Rule::find(rules, name);
    let roles = rule.map(|rule| rule.roles);
    let mut found = Found { text, span, roles, target: None, part: None, fields: Vec::new() };
    // Malformed JSON yields the fields before the error, or none.
    let _ = found.object(&mut Cursor::at(text, arguments), "");
    ClassifiedCall {
        kind: rule.map_or(ToolKind::Other, |rule| rule.kind),
        target: found.target.map(|(_, text)| text),
        part: found.part,
        fields: found.fields,
    }
}

struct Found<'a> {
    text: &'a [u8],
    span: &'a dyn Fn(&Range<usize>) -> Span,
    roles: Option<Roles>,
    /// The best target so far, with its rank; the lowest rank is the best.
    target: Option<(usize, Text)>,
    part: Option<Box<str>>,
    fields: Vec<Field>,
}

impl Found<'_> {
    fn object(&mut self, cursor: &mut Cursor<'_>, prefix: &str) -> Result<(), MalformedJson> {
        cursor.object(|value, key| {
            let key = String::from_utf8_lossy(key);
            let name = format!("{prefix}{key}");
            match value.kind() {
                Kind::String => {
                    let place = value.skip()?;
                    self.found(&name, &place);
                    self.narrow(&key, &place);
                }
                Kind::Array if prefix.is_empty() => self.array(value, &name)?,
                Kind::Array | Kind::Object | Kind::Other => {
                    let place = value.skip()?;
                    self.narrow(&key, &place);
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    fn array(&mut self, cursor: &mut Cursor<'_>, name: &str) -> Result<(), MalformedJson> {
        let mut idx = 0;
        cursor.array(|element| {
            let name = format!("{name}[{idx}]");
            match element.kind() {
                Kind::Object => {
                    self.object(element, &format!("{name}."))?;
                }
                // If the tool has no rule, the strings of a list are neither targets nor fields.
                Kind::String if self.roles.is_some() => self.found(&name, &element.skip()?),
                Kind::String | Kind::Array | Kind::Other => {
                    element.skip()?;
                }
            }
            idx += 1;
            Ok(())
        })?;
        Ok(())
    }

    fn found(&mut self, name: &str, place: &Range<usize>) {
        let text = Text::Source((self.span)(place));
        let rank = match &self.roles {
            Some(roles) => roles.target_rank(name),
            None => Some(usize::from(name.contains('['))),
        };
        if let Some(rank) = rank
            && self.target.as_ref().is_none_or(|(best, _)| rank < *best)
        {
            self.target = Some((rank, text.clone()));
        }
        let role = match &self.roles {
            Some(roles) => roles.role(&without_index(name)),
            None => Some(FieldRole::Other),
        };
        if let Some(role) = role {
            self.fields.push(Field { name: name.into(), role, text });
        }
    }

    fn narrow(&mut self, key: &str, place: &Range<usize>) {
        if self.roles.is_some_and(|roles| has(roles.part, key)) {
            let value = String::from_utf8_lossy(&self.text[place.clone()]);
            let part = self.part.take().unwrap_or_default();
            self.part = Some(format!("{part}{key}={value};").into());
        }
    }
}

/// The name of an argument without indices, as the table has it: `edits[].oldText` for
/// `edits[2].oldText`.
fn without_index(name: &str) -> String {
    match (name.find('['), name.find(']')) {
        (Some(open), Some(close)) if open < close => {
            format!("{}{}", &name[..=open], &name[close..])
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_known_tool_has_arguments_that_select_a_part() {
        let roles = Roles::target("path").part("offset limit");
        let rules = [Rule::new("read", ToolKind::Read, roles)];
        let line = br#"{"path":"a","offset":3,"limit":9,"more":1}"#;
        for (name, expect) in [("Read", Some("offset=3;limit=9;")), ("cat", None)] {
            let call = classify(&rules, name, line, &(0..line.len()), 0);
            assert_eq!(call.part.as_deref(), expect, "{name}");
        }
    }
}
