//! Removes shorter names of files from the facts that were used later, so that each file counts
//! once.

use epitome_passes::facts::FactKind;
use epitome_passes::losses::UsedFact;

/// Removes facts that are a shorter name of a file whose path is also a fact: the end of the path,
/// the name of the file, or that name without its extension.
pub(super) fn one_per_file(facts: Vec<UsedFact>) -> Vec<UsedFact> {
    let paths: Vec<String> =
        facts.iter().filter(|it| it.kind == FactKind::Path).map(|it| it.fact.clone()).collect();
    let facts = facts.into_iter();
    facts.filter(|it| !paths.iter().any(|path| is_part_of(&it.fact, path))).collect()
}

/// Whether `part` is a shorter name of the file at `path`.
fn is_part_of(part: &str, path: &str) -> bool {
    let stem = path.rsplit_once('.').map(|(stem, _)| stem).filter(|stem| !stem.ends_with('/'));
    part.len() < path.len()
        && [Some(path), stem].into_iter().flatten().any(|whole| {
            let before = whole.strip_suffix(part);
            before.is_some_and(|before| before.is_empty() || before.ends_with(['/', '\\']))
        })
}

/// Puts a slash in front of a fact that is a path in a user's home folder, such as `home/ada/a.rs`.
/// Facts are stored without it, but redaction recognises a user's name only with it. Other facts
/// are returned unchanged.
pub(super) fn with_slash(used: &UsedFact) -> String {
    let is_of_user = ["Users/", "home/", "root/"].iter().any(|it| used.fact.starts_with(it));
    match used.kind {
        FactKind::Path if is_of_user => format!("/{}", used.fact),
        _ => used.fact.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(fact: &str, kind: FactKind) -> UsedFact {
        UsedFact { fact: fact.to_owned(), kind, line: 1, from: 1 }
    }

    #[test]
    fn a_file_is_one_fact_however_it_is_named() {
        use FactKind::{Identifier, Path};
        let facts = [
            ("commit_git.go", Path),
            ("strategy/commit_git.go", Path),
            ("cli/strategy/commit_git.go", Path),
            ("Users/soph/Work/cli/strategy/commit_git.go", Path),
            ("commit_git", Identifier),
            ("git.go", Path),
            ("src/.git", Path),
            ("number_7", Identifier),
        ];
        let facts = facts.map(|(fact, kind)| used(fact, kind)).to_vec();
        let left: Vec<String> = one_per_file(facts).into_iter().map(|it| it.fact).collect();
        let expect =
            ["Users/soph/Work/cli/strategy/commit_git.go", "git.go", "src/.git", "number_7"];
        assert_eq!(left, expect);
    }

    #[test]
    fn a_folder_of_a_user_begins_with_a_slash() {
        let of = |fact| with_slash(&used(fact, FactKind::Path));
        let bare = "Users/soph/Work/a.go";
        assert_eq!(of(bare), format!("/{bare}"));
        assert_eq!(of("home/soph/a.go"), "/home/soph/a.go");
        assert_eq!(of("src/home/a.go"), "src/home/a.go");
        assert_eq!(with_slash(&used("Users/x", FactKind::Identifier)), "Users/x");
    }
}
