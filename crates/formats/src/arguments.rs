//! Finding a call's target and bulky fields among its arguments, by a table of tools.

use std::ops::Range;

use epitome_model::{Field, FieldRole, Span, Text, ToolKind};

use crate::json::{Cursor, Kind, Malformed};

/// What is known of a tool.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its name in lower case.
    pub name: &'static str,
    /// What it does.
    pub kind: ToolKind,
    /// What its arguments are for.
    pub roles: Roles,
}

/// What the arguments of a tool are for, by their names. `edits[].old` is a member of each element
/// of an array.
#[derive(Clone, Copy, Debug)]
pub struct Roles {
    /// What the call acts on: the first of these that is there.
    pub target: &'static [&'static str],
    /// Which part of it.
    pub part: &'static [&'static str],
    /// What may be bulky.
    pub fields: &'static [(&'static str, FieldRole)],
}

/// What a call is: what its tool does, what it acts on, which part of it, and what may be bulky.
pub type Known = (ToolKind, Option<Text>, Option<Box<str>>, Vec<Field>);

/// What a call is. A tool that is not in the table is [`ToolKind::Other`]: its target is its first
/// text, and all its texts may be bulky.
pub fn known(
    rules: &[Rule],
    name: &str,
    line: &[u8],
    arguments: &Range<usize>,
    base: u64,
) -> Known {
    let span = |place: &Range<usize>| Span {
        start: base + place.start as u64,
        end: base + place.end as u64,
    };
    known_at(rules, name, line, arguments, &span)
}

/// [`known`] of arguments in any text, of which `span` says where a range stands in the source.
pub fn known_at(
    rules: &[Rule],
    name: &str,
    text: &[u8],
    arguments: &Range<usize>,
    span: &dyn Fn(&Range<usize>) -> Span,
) -> Known {
    let rule = rules.iter().find(|rule| rule.name.eq_ignore_ascii_case(name));
    let roles = rule.map(|rule| rule.roles);
    let mut found = Found { text, span, roles, target: None, part: None, fields: Vec::new() };
    // What is no JSON has no fields, or those up to where it goes wrong.
    let _ = found.object(&mut Cursor::at(text, arguments), "");
    let kind = rule.map_or(ToolKind::Other, |rule| rule.kind);
    (kind, found.target.map(|(_, text)| text), found.part, found.fields)
}

struct Found<'a> {
    text: &'a [u8],
    span: &'a dyn Fn(&Range<usize>) -> Span,
    roles: Option<Roles>,
    /// The best target so far, and its place in the table.
    target: Option<(usize, Text)>,
    part: Option<Box<str>>,
    fields: Vec<Field>,
}

impl Found<'_> {
    fn object(&mut self, cursor: &mut Cursor<'_>, prefix: &str) -> Result<(), Malformed> {
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

    fn array(&mut self, cursor: &mut Cursor<'_>, name: &str) -> Result<(), Malformed> {
        let mut idx = 0;
        cursor.array(|element| {
            let name = format!("{name}[{idx}]");
            match element.kind() {
                Kind::Object => {
                    self.object(element, &format!("{name}."))?;
                }
                // Of a tool that nobody knows, words in a list are no bulk.
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
            Some(roles) => roles.target.iter().position(|target| *target == name),
            None => Some(usize::from(name.contains('['))),
        };
        if let Some(rank) = rank
            && self.target.as_ref().is_none_or(|(best, _)| rank < *best)
        {
            self.target = Some((rank, text.clone()));
        }
        let role = match &self.roles {
            Some(roles) => {
                let pattern = without_index(name);
                roles.fields.iter().find(|(field, _)| *field == pattern).map(|(_, role)| *role)
            }
            None => Some(FieldRole::Other),
        };
        if let Some(role) = role {
            self.fields.push(Field { name: name.into(), role, text });
        }
    }

    fn narrow(&mut self, key: &str, place: &Range<usize>) {
        if self.roles.is_some_and(|roles| roles.part.contains(&key)) {
            let value = String::from_utf8_lossy(&self.text[place.clone()]);
            let part = self.part.take().unwrap_or_default();
            self.part = Some(format!("{part}{key}={value};").into());
        }
    }
}

/// `edits[2].oldText` as the table writes it: `edits[].oldText`.
fn without_index(name: &str) -> String {
    match (name.find('['), name.find(']')) {
        (Some(open), Some(close)) if open < close => {
            format!("{}{}", &name[..=open], &name[close..])
        }
        _ => name.to_owned(),
    }
}
