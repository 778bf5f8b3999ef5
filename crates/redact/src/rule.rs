//! Rules as data, in the format of gitleaks' configuration files.
//!
//! Supported are `[[rules]]` with `id`, `description`, `regex`, `keywords`, `entropy`,
//! `secretGroup`, `tags` and their allowlists, the global allowlists with `targetRules`, and
//! `disabledRules` of `[extend]`: <https://github.com/gitleaks/gitleaks#configuration>. epitome
//! adds `check`, `replace` and `generic`. Anything else is ignored, for example `path`: the texts
//! of a session are not in files.

use serde::Deserialize;

use crate::check::Check;
use crate::placeholder;

/// Why rules cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleFault {
    /// The file is not TOML of this format.
    #[error("invalid rules file: {0}")]
    NoRules(String),
    /// A regular expression does not compile.
    #[error("the expression of the rule `{rule}` cannot be used: {what}")]
    Expression {
        /// The id of the rule, or `allowlist` if the expression is in a global allowlist.
        rule: String,
        /// The fault.
        what: String,
    },
    /// A requested rule does not exist.
    #[error("unknown rule or kind of rules: `{0}`")]
    Unknown(String),
}

/// The kind of data that a rule finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Credentials.
    Secrets,
    /// Data that identifies a person.
    Personal,
}

impl Kind {
    /// The name of the kind on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Secrets => "secrets",
            Kind::Personal => "pii",
        }
    }
}

/// A rule, which finds one kind of secret.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Rule {
    /// The name of the rule.
    pub id: String,
    /// A description of what the rule finds.
    pub description: String,
    /// The regular expression. A rule without one is about file names, and finds nothing here.
    pub regex: Option<String>,
    /// Words of which the text must contain at least one, in capital or small letters. Empty: no
    /// condition.
    pub keywords: Vec<String>,
    /// The minimum entropy of the secret, in bits per byte.
    pub entropy: Option<f64>,
    /// The capture group that is the secret; 0 for the first group that matches. If there is no
    /// such group, or it is empty, the secret is the whole match.
    #[serde(rename = "secretGroup")]
    pub secret_group: usize,
    /// Tags of the rule. `pii` means that it finds personal data.
    pub tags: Vec<String>,
    /// A condition for the secret in addition to the regular expression.
    pub check: Option<Check>,
    /// The text that replaces the secret, instead of a placeholder.
    pub replace: Option<String>,
    /// Whether rules that are not generic take precedence over this rule if they match the same
    /// text.
    pub generic: bool,
    #[serde(rename = "allowlist", deserialize_with = "one_or_many")]
    pub(crate) allowlist: Vec<Allowlist>,
    #[serde(rename = "allowlists")]
    pub(crate) allowlists: Vec<Allowlist>,
}

impl Rule {
    /// The kind of data that the rule finds.
    pub fn kind(&self) -> Kind {
        if self.tags.iter().any(|tag| tag == "pii") { Kind::Personal } else { Kind::Secrets }
    }

    /// All allowlists of the rule.
    pub(crate) fn allowed(&self) -> impl Iterator<Item = &Allowlist> {
        self.allowlist.iter().chain(&self.allowlists)
    }
}

/// Conditions under which a match is not a secret.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Allowlist {
    pub(crate) condition: Condition,
    #[serde(rename = "regexTarget")]
    pub(crate) target: AllowlistText,
    pub(crate) regexes: Vec<String>,
    pub(crate) stopwords: Vec<String>,
    /// The ids of the rules to which a global allowlist applies; empty: to all rules.
    #[serde(rename = "targetRules")]
    targets: Vec<String>,
    /// Names of files and commits, which a session does not have.
    paths: Vec<String>,
    commits: Vec<String>,
}

impl Allowlist {
    /// Whether a global allowlist applies to all rules.
    pub(crate) fn is_for_all(&self) -> bool {
        self.targets.is_empty()
    }

    /// Whether a global allowlist names the rule with this id.
    pub(crate) fn names(&self, id: &str) -> bool {
        self.targets.iter().any(|target| placeholder::name(target) == id)
    }

    /// Whether the allowlist can apply to a text that is not in a file.
    pub(crate) fn speaks(&self) -> bool {
        let of_files = !self.paths.is_empty() || !self.commits.is_empty();
        let of_texts = !self.regexes.is_empty() || !self.stopwords.is_empty();
        of_texts && !(of_files && self.condition == Condition::All)
    }
}

/// Whether an allowlist applies if one of its conditions holds, or only if all of them hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Condition {
    #[default]
    #[serde(alias = "or", rename = "OR", alias = "||")]
    Any,
    #[serde(alias = "and", rename = "AND", alias = "&&")]
    All,
}

/// The text that the regular expressions of an allowlist are applied to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AllowlistText {
    #[default]
    Secret,
    Match,
    Line,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    rules: Vec<Rule>,
    #[serde(deserialize_with = "one_or_many")]
    pub(crate) allowlist: Vec<Allowlist>,
    pub(crate) allowlists: Vec<Allowlist>,
    extend: Extend,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Extend {
    #[serde(rename = "disabledRules")]
    pub(crate) disabled: Vec<String>,
}

/// A set of rules.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub(crate) rules: Vec<Rule>,
    pub(crate) allowed: Vec<Allowlist>,
    /// The ids of the rules whose placeholders are recognised, also of rules that are not applied.
    pub(crate) known: Vec<String>,
    pub(crate) disabled: Vec<String>,
}

impl Rules {
    /// The rules that come with epitome, for secrets and for personal data.
    ///
    /// # Panics
    ///
    /// Never: a test parses these rules.
    pub fn built_in() -> Rules {
        const FILES: [&str; 3] = [
            include_str!("../rules/secrets.toml"),
            include_str!("../rules/assigned.toml"),
            include_str!("../rules/personal.toml"),
        ];
        FILES.iter().fold(Rules::default(), |rules, text| {
            rules.merge(Rules::parse(text).expect("the built-in rules are rules"))
        })
    }

    /// Parses a rules file.
    ///
    /// # Errors
    ///
    /// [`RuleFault::NoRules`] if the text is not TOML in the format of a rules file. Regular
    /// expressions are not checked here, but by [`Finder::new`](crate::Finder::new) and
    /// [`Rules::into_checked`].
    ///
    /// ```
    /// use epitome_redact::Rules;
    ///
    /// let rules = Rules::parse("[[rules]]\nid = 'badge'\nregex = 'B-\\d{6}'\nkeywords = ['b-']")?;
    /// assert_eq!(rules.ids().collect::<Vec<_>>(), ["badge"]);
    /// # Ok::<(), epitome_redact::RuleFault>(())
    /// ```
    pub fn parse(text: &str) -> Result<Rules, RuleFault> {
        let file: File =
            toml::from_str(text).map_err(|err| RuleFault::NoRules(err.message().to_owned()))?;
        let mut rules = file.rules;
        for rule in &mut rules {
            rule.id = placeholder::name(&rule.id);
        }
        let known = rules.iter().map(|rule| rule.id.clone()).collect();
        let allowed = file.allowlist.into_iter().chain(file.allowlists).collect();
        let disabled = file.extend.disabled.iter().map(|id| placeholder::name(id)).collect();
        Ok(Rules { rules, allowed, known, disabled })
    }

    /// Adds the rules and allowlists of `later`. Rules of `self` are removed if `later` disables
    /// them or has a rule with the same id.
    #[must_use]
    pub fn merge(mut self, later: Rules) -> Rules {
        self.rules.retain(|rule| {
            let again = later.rules.iter().any(|other| other.id == rule.id);
            !again && !later.disabled.contains(&rule.id)
        });
        self.rules.extend(later.rules);
        self.allowed.extend(later.allowed);
        self.known.extend(later.known);
        self
    }

    /// Keeps only the named rules. A name is an id, `secrets` or `pii`.
    ///
    /// # Errors
    ///
    /// [`RuleFault::Unknown`] for a name that does not exist.
    pub fn only<S: AsRef<str>>(mut self, names: &[S]) -> Result<Rules, RuleFault> {
        for name in names.iter().map(AsRef::as_ref) {
            let is_kind = [Kind::Secrets, Kind::Personal].iter().any(|kind| kind.name() == name);
            let id = placeholder::name(name);
            if !is_kind && !self.rules.iter().any(|rule| rule.id == id) {
                return Err(RuleFault::Unknown(name.to_owned()));
            }
        }
        let ids: Vec<String> = names.iter().map(|name| placeholder::name(name.as_ref())).collect();
        self.rules.retain(|rule| ids.iter().any(|id| rule.id == *id || rule.kind().name() == id));
        Ok(self)
    }

    /// The ids of the rules, in their order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| &*rule.id)
    }

    /// The rules.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }
}

fn one_or_many<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Allowlist>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Many(Vec<Allowlist>),
        One(Allowlist),
    }
    Ok(match Either::deserialize(from)? {
        Either::Many(many) => many,
        Either::One(one) => vec![one],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_named_as_in_its_file() {
        let rules = || {
            let text = "[[rules]]\nid = 'a.b'\nregex = 'x'\n[[rules]]\nid = 'c'\nregex = 'y'";
            Rules::parse(text).expect("rules")
        };
        let ids = |rules: &Rules| rules.ids().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(ids(&rules()), ["a-b", "c"]);
        assert_eq!(ids(&rules().only(&["a.b"]).expect("a rule")), ["a-b"]);
        let without = Rules::parse("[extend]\ndisabledRules = ['a.b']").expect("rules");
        assert_eq!(ids(&rules().merge(without)), ["c"]);
    }
}
