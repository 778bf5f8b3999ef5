//! Rules as data, in the form of gitleaks' configuration files.
//!
//! Read are `[[rules]]` with `id`, `description`, `regex`, `keywords`, `entropy`, `secretGroup`,
//! `path`, `tags` and their allowlists, the allowlists of all rules, and `[extend]`:
//! <https://github.com/gitleaks/gitleaks#configuration>. Ours beside them are `check`, `replace`
//! and `generic`; what else stands in a file is left unread.

use serde::Deserialize;

use crate::check::Check;
use crate::placeholder;

/// A rule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleFault {
    /// The file is no TOML of this form.
    #[error("these are no rules: {0}")]
    NoRules(String),
    /// An expression does not compile.
    #[error("the expression of the rule `{rule}` cannot be used: {what}")]
    Expression {
        /// The rule, or `allowlist`.
        rule: String,
        /// What is wrong.
        what: String,
    },
    /// A rule is asked for that is not there.
    #[error("there is no rule and no kind of rules called `{0}`")]
    Unknown(String),
}

/// What a rule is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// What opens doors.
    Secrets,
    /// What tells who somebody is.
    Personal,
}

impl Kind {
    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Secrets => "secrets",
            Kind::Personal => "pii",
        }
    }
}

/// One rule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Rule {
    /// Its name.
    pub id: String,
    /// What it finds.
    pub description: String,
    /// What that looks like. A rule without it is about names of files, and finds nothing here.
    pub regex: Option<String>,
    /// Words of which one has to stand in the text; letters may be small or capital.
    pub keywords: Vec<String>,
    /// The least entropy of the secret, in bits a character.
    pub entropy: Option<f64>,
    /// The group of the expression that is the secret. 0: the first that is there, or else all.
    #[serde(rename = "secretGroup")]
    pub secret_group: usize,
    /// `pii` for personal data.
    pub tags: Vec<String>,
    /// What else has to hold of a secret.
    pub check: Option<Check>,
    /// What takes the place of it, instead of a placeholder.
    pub replace: Option<String>,
    /// Whether a rule that knows more goes before.
    pub generic: bool,
    #[serde(rename = "allowlist", deserialize_with = "one_or_many")]
    pub(crate) allowlist: Vec<Allowlist>,
    #[serde(rename = "allowlists")]
    pub(crate) allowlists: Vec<Allowlist>,
}

impl Rule {
    /// What it is there for.
    pub fn kind(&self) -> Kind {
        if self.tags.iter().any(|tag| tag == "pii") { Kind::Personal } else { Kind::Secrets }
    }

    /// What says that a secret is none.
    pub(crate) fn allowed(&self) -> impl Iterator<Item = &Allowlist> {
        self.allowlist.iter().chain(&self.allowlists)
    }
}

/// What says that a secret is none.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Allowlist {
    pub(crate) condition: Condition,
    #[serde(rename = "regexTarget")]
    pub(crate) target: Target,
    pub(crate) regexes: Vec<String>,
    pub(crate) stopwords: Vec<String>,
    /// Names of files and commits, of which a session has none.
    paths: Vec<String>,
    commits: Vec<String>,
}

impl Allowlist {
    /// Whether it can say anything about a text that stands in no file.
    pub(crate) fn speaks(&self) -> bool {
        let of_files = !self.paths.is_empty() || !self.commits.is_empty();
        let of_texts = !self.regexes.is_empty() || !self.stopwords.is_empty();
        of_texts && !(of_files && self.condition == Condition::All)
    }
}

/// Whether one part of an allowlist is enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Condition {
    #[default]
    #[serde(alias = "or", rename = "OR", alias = "||")]
    Any,
    #[serde(alias = "and", rename = "AND", alias = "&&")]
    All,
}

/// What the expressions of an allowlist look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Target {
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
    /// Rules whose placeholders are known, whether they are looked for or not.
    pub(crate) known: Vec<String>,
    pub(crate) disabled: Vec<String>,
}

impl Rules {
    /// The rules that come with epitome, for secrets and for personal data.
    ///
    /// # Panics
    ///
    /// Never: a test reads them.
    pub fn built_in() -> Rules {
        const FILES: [&str; 3] = [
            include_str!("../rules/secrets.toml"),
            include_str!("../rules/assigned.toml"),
            include_str!("../rules/personal.toml"),
        ];
        FILES.iter().fold(Rules::default(), |rules, text| {
            rules.and(Rules::parse(text).expect("the built-in rules are rules"))
        })
    }

    /// Reads a file of rules.
    ///
    /// # Errors
    ///
    /// [`RuleFault::NoRules`] and [`RuleFault::Expression`].
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
        Ok(Rules { rules, allowed, known, disabled: file.extend.disabled })
    }

    /// These rules and others. Of two with one id the later is taken; rules that the later file
    /// disables go.
    #[must_use]
    pub fn and(mut self, later: Rules) -> Rules {
        self.rules.retain(|rule| {
            let again = later.rules.iter().any(|other| other.id == rule.id);
            !again && !later.disabled.contains(&rule.id)
        });
        self.rules.extend(later.rules);
        self.allowed.extend(later.allowed);
        self.known.extend(later.known);
        self
    }

    /// Only the rules that these words name: ids, `secrets`, `pii`.
    ///
    /// # Errors
    ///
    /// [`RuleFault::Unknown`].
    pub fn only<S: AsRef<str>>(mut self, names: &[S]) -> Result<Rules, RuleFault> {
        let means = |name: &str, rule: &Rule| rule.id == name || rule.kind().name() == name;
        for name in names.iter().map(AsRef::as_ref) {
            let is_kind = [Kind::Secrets, Kind::Personal].iter().any(|kind| kind.name() == name);
            if !is_kind && !self.rules.iter().any(|rule| rule.id == name) {
                return Err(RuleFault::Unknown(name.to_owned()));
            }
        }
        self.rules.retain(|rule| names.iter().any(|name| means(name.as_ref(), rule)));
        Ok(self)
    }

    /// The names of the rules, in their order.
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
