//! `edit`: a part of a file.

use serde::Deserialize;

use epitome_model::ToolKind;

use super::read::text_of;
use super::write::replace;
use super::{Fold, Tool, Workplace, described, parsed, permitted};
use crate::permissions::Access;

pub(super) const TOOL: Tool = Tool {
    name: "edit",
    kind: ToolKind::Edit,
    subject: |it| described(it, &["{path}"]),
    fold: Fold::Beginning,
    description: "Replaces a text in a file by another. The old text must be in the file exactly \
                  once, unless replace_all is true: give enough lines around it.",
    parameters: concat!(
        r#"{"type":"object","properties":{"path":{"type":"string","description":"The file, "#,
        r#"relative to the project"},"old_string":{"type":"string","description":"The text "#,
        r#"to replace, with all its white space"},"new_string":{"type":"string","#,
        r#""description":"What replaces it"},"replace_all":{"type":"boolean","#,
        r#""description":"Replace every occurrence"}},"required":["path","old_string","#,
        r#""new_string"]}"#,
    ),
    access: |place, arguments| {
        let Arguments { path, .. } = parsed(arguments)?;
        place.resolve(&path).map(Access::Write)
    },
    run: |place, arguments, access, _| edit(place, &parsed(arguments)?, access),
};

#[derive(Deserialize)]
struct Arguments {
    path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

fn edit(place: &Workplace, arguments: &Arguments, access: &Access) -> Result<String, String> {
    let Arguments { old_string, new_string, replace_all, .. } = arguments;
    let path = permitted(access)?;
    let name = place.shown(path);
    if old_string.is_empty() {
        return Err("old_string is empty: use write for a new file".to_owned());
    }
    if old_string == new_string {
        return Err("old_string and new_string are the same".to_owned());
    }
    let text = text_of(place, path)?;
    let times = text.matches(old_string.as_str()).count();
    match times {
        0 => return Err(format!("old_string is not in {name}: read it again")),
        1 => {}
        _ if *replace_all => {}
        _ => {
            return Err(format!(
                "old_string is {times} times in {name}: give more lines around it"
            ));
        }
    }
    let at = text.find(old_string.as_str()).unwrap_or_default();
    let line = text[..at].matches('\n').count() + 1;
    replace(place, path, &text.replace(old_string.as_str(), new_string))?;
    let times = if times == 1 { String::new() } else { format!(" ({times} places)") };
    Ok(format!("edited {name} at line {line}{times}"))
}
