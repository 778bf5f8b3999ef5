//! The modules inside a crate: their imports form no circle.
//!
//! A module imports another one when a path in its code leads there: `use`, `crate::`, `super::`,
//! `self::`, or the name of a child or of an imported module. A name that is re-exported counts as
//! an import of the module that defines it. What a child takes from its parents does not count, and
//! neither does code that is compiled for tests only.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{File, Findings, Repo};

/// No two modules of a crate import each other, directly or by way of others.
pub(super) fn modules_form_no_circles(repo: &Repo, findings: &mut Findings) {
    for root in roots(repo) {
        for circle in Graph::of(repo, root).circles() {
            let what = format!("modules import each other: {}", circle.way);
            findings.fail(&circle.file, 0, what);
        }
    }
}

/// The first file of every library and program of the workspace.
fn roots(repo: &Repo) -> impl Iterator<Item = &File> {
    repo.rust().filter(|file| {
        file.path.starts_with("crates/")
            && (file.path.ends_with("/src/lib.rs") || file.path.ends_with("/src/main.rs"))
    })
}

/// The path of a module: its names below the root of the crate.
type ModulePath = Vec<String>;

/// The modules of a crate.
struct Graph {
    modules: BTreeMap<ModulePath, Module>,
}

/// What the code of a module says.
#[derive(Default)]
struct Module {
    file: String,
    children: BTreeSet<String>,
    /// Names of items that are defined here.
    defined: BTreeSet<String>,
    /// What `use` brings in: the name here, and the path that it stands for.
    imported: Vec<(String, ModulePath)>,
    /// Every path in the code, with its line.
    paths: Vec<(usize, ModulePath)>,
}

/// Modules that import each other.
struct Circle {
    /// The file of the first of them.
    file: String,
    /// `a -> b (file:line) -> a (file:line)`: the shortest way back to the first.
    way: String,
}

impl Graph {
    fn of(repo: &Repo, root: &File) -> Graph {
        let mut graph = Graph { modules: BTreeMap::new() };
        let mut open = vec![(ModulePath::new(), root)];
        while let Some((path, file)) = open.pop() {
            let module = Module::of(file);
            for child in &module.children {
                let path: ModulePath = path.iter().chain([child]).cloned().collect();
                let base = root.path.rsplit_once('/').map_or("", |(folder, _)| folder);
                let base = format!("{base}/{}", path.join("/"));
                let file = repo.file(&format!("{base}.rs"));
                let file = file.or_else(|| repo.file(&format!("{base}/mod.rs")));
                open.extend(file.map(|file| (path, file)));
            }
            graph.modules.insert(path, module);
        }
        graph
    }

    /// The circles, one for each group of modules that all reach each other.
    fn circles(&self) -> Vec<Circle> {
        let arrows: BTreeMap<&ModulePath, BTreeMap<ModulePath, usize>> =
            self.modules.iter().map(|(path, module)| (path, self.arrows(path, module))).collect();
        let mut seen: BTreeSet<&ModulePath> = BTreeSet::new();
        let mut circles = Vec::new();
        for from in self.modules.keys() {
            if seen.contains(from) {
                continue;
            }
            let Some(way) = way_back(&arrows, from) else { continue };
            let there = reached(&arrows, from);
            seen.extend(
                self.modules
                    .keys()
                    .filter(|to| there.contains(*to) && reached(&arrows, to).contains(from)),
            );
            let mut text = name(from);
            for pair in way.windows(2) {
                let line = arrows[&pair[0]][&pair[1]];
                let file = &self.modules[&pair[0]].file;
                text.push_str(&format!(" -> {} ({file}:{line})", name(&pair[1])));
            }
            circles.push(Circle { file: self.modules[from].file.clone(), way: text });
        }
        circles
    }

    /// The modules that one imports, with the line of the first import.
    fn arrows(&self, from: &ModulePath, module: &Module) -> BTreeMap<ModulePath, usize> {
        let mut arrows = BTreeMap::new();
        for (line, path) in &module.paths {
            let Some(to) = self.resolve(from, path, 0) else { continue };
            if !from.starts_with(&to) {
                arrows.entry(to).or_insert(*line);
            }
        }
        arrows
    }

    /// The module that a path leads to, or that defines what it leads to.
    fn resolve(&self, at: &ModulePath, path: &[String], depth: usize) -> Option<ModulePath> {
        let (first, rest) = path.split_first()?;
        let module = self.modules.get(at)?;
        if depth > 8 {
            return None;
        }
        match &**first {
            "crate" => self.walk(&ModulePath::new(), rest, depth),
            "self" => self.walk(at, rest, depth),
            "super" => self.walk(&at[..at.len().checked_sub(1)?].to_vec(), rest, depth),
            _ if self.child(at, first).is_some() => self.walk(at, path, depth),
            _ => {
                let (_, import) = module.imported.iter().find(|(name, _)| name == first)?;
                if import.first() == Some(first) {
                    return None;
                }
                let full: ModulePath = import.iter().chain(rest).cloned().collect();
                self.resolve(at, &full, depth + 1)
            }
        }
    }

    fn walk(&self, at: &ModulePath, path: &[String], depth: usize) -> Option<ModulePath> {
        let Some((first, rest)) = path.split_first() else { return Some(at.clone()) };
        let module = self.modules.get(at)?;
        if first == "super" {
            return self.walk(&at[..at.len().checked_sub(1)?].to_vec(), rest, depth);
        }
        if let Some(child) = self.child(at, first) {
            return self.walk(&child, rest, depth);
        }
        if module.defined.contains(first) {
            return Some(at.clone());
        }
        if let Some((_, import)) = module.imported.iter().find(|(name, _)| name == first) {
            let full: ModulePath = import.iter().chain(rest).cloned().collect();
            return self.resolve(at, &full, depth + 1).or_else(|| Some(at.clone()));
        }
        let globs = module.imported.iter().filter(|(name, _)| name == "*");
        for (_, import) in globs {
            let to = self.resolve(at, import, depth + 1);
            if let Some(to) = to.filter(|to| self.modules[to].defined.contains(first)) {
                return Some(to);
            }
        }
        Some(at.clone())
    }

    fn child(&self, at: &ModulePath, name: &str) -> Option<ModulePath> {
        let path: ModulePath =
            at.iter().map(String::as_str).chain([name]).map(str::to_owned).collect();
        self.modules.contains_key(&path).then_some(path)
    }
}

fn name(path: &ModulePath) -> String {
    if path.is_empty() { "crate".into() } else { path.join("::") }
}

/// All modules that one imports, directly or by way of others.
fn reached(
    arrows: &BTreeMap<&ModulePath, BTreeMap<ModulePath, usize>>,
    from: &ModulePath,
) -> BTreeSet<ModulePath> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from.clone()];
    while let Some(at) = open.pop() {
        for to in arrows.get(&at).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(to.clone()) {
                open.push(to.clone());
            }
        }
    }
    reached
}

/// The shortest way from a module to itself, both ends included.
fn way_back(
    arrows: &BTreeMap<&ModulePath, BTreeMap<ModulePath, usize>>,
    from: &ModulePath,
) -> Option<Vec<ModulePath>> {
    let mut ways = VecDeque::from([vec![from.clone()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        let at = way.last()?;
        for to in arrows.get(at).into_iter().flat_map(BTreeMap::keys) {
            let longer: Vec<ModulePath> = way.iter().chain([to]).cloned().collect();
            if to == from {
                return Some(longer);
            }
            if seen.insert(to.clone()) {
                ways.push_back(longer);
            }
        }
    }
    None
}

impl Module {
    fn of(file: &File) -> Module {
        let tokens = without_tests(tokens(&file.text));
        let mut module = Module { file: file.path.clone(), ..Module::default() };
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            match &*token.text {
                "use" => at = module.take_use(&tokens, at + 1),
                "mod" if tokens.get(at + 2).is_some_and(|next| next.text == ";") => {
                    module.children.insert(tokens[at + 1].text.clone());
                    at += 3;
                }
                "struct" | "enum" | "union" | "trait" | "type" | "fn" | "const" | "static" => {
                    module.defined.extend(tokens.get(at + 1).map(|next| next.text.clone()));
                    at += 1;
                }
                text if is_name(text) => at = module.take_path(&tokens, at),
                _ => at += 1,
            }
        }
        module
    }

    /// Takes `a::b::{c, d as e}`; returns where the declaration ends.
    fn take_use(&mut self, tokens: &[Token], begin: usize) -> usize {
        let mut prefix = ModulePath::new();
        let mut outer: Vec<ModulePath> = Vec::new();
        let mut path = ModulePath::new();
        let mut alias = None;
        let mut at = begin;
        while let Some(token) = tokens.get(at) {
            match &*token.text {
                "{" => {
                    outer.push(prefix.clone());
                    prefix.append(&mut path);
                }
                "," | "}" | ";" => {
                    self.bring(token.line, &prefix, std::mem::take(&mut path), alias.take());
                    if token.text == "}" {
                        prefix = outer.pop().unwrap_or_default();
                    }
                    if token.text == ";" {
                        return at + 1;
                    }
                }
                "as" => {
                    alias = tokens.get(at + 1).map(|next| next.text.clone());
                    at += 1;
                }
                "*" => alias = Some("*".into()),
                text if is_name(text) => path.push(text.to_owned()),
                _ => {}
            }
            at += 1;
        }
        at
    }

    fn bring(&mut self, line: usize, prefix: &ModulePath, path: ModulePath, alias: Option<String>) {
        if path.is_empty() && alias.is_none() {
            return;
        }
        let mut full: ModulePath = prefix.iter().cloned().chain(path).collect();
        if full.len() > 1 && full.last().is_some_and(|name| name == "self") {
            full.pop();
        }
        let name = alias.or_else(|| full.last().cloned()).unwrap_or_default();
        self.paths.push((line, full.clone()));
        self.imported.push((name, full));
    }

    /// Takes `a::b`; returns where it ends.
    fn take_path(&mut self, tokens: &[Token], begin: usize) -> usize {
        let mut path = vec![tokens[begin].text.clone()];
        let mut at = begin + 1;
        while tokens.get(at).is_some_and(|token| token.text == "::") {
            let Some(next) = tokens.get(at + 1).filter(|next| is_name(&next.text)) else { break };
            path.push(next.text.clone());
            at += 2;
        }
        let is_part = begin > 0 && matches!(&*tokens[begin - 1].text, "." | "::");
        if path.len() > 1 && !is_part {
            self.paths.push((tokens[begin].line, path));
        }
        at
    }
}

/// A name, a `::`, or another character of code.
#[derive(Clone, Debug)]
struct Token {
    line: usize,
    text: String,
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Code without comments, white space and the insides of literals.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let n = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(n) = literal(rest) {
            n
        } else if is_name(rest) {
            let n = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            tokens.push(Token { line, text: rest[..n].to_owned() });
            n
        } else if rest.starts_with("::") {
            tokens.push(Token { line, text: "::".into() });
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(Token { line, text: first.to_string() });
            }
            first.len_utf8()
        };
        line += rest[..n].matches('\n').count();
        rest = &rest[n..];
    }
    tokens
}

/// The length of the string or character that begins here.
fn literal(text: &str) -> Option<usize> {
    let text_of = text.strip_prefix('b').unwrap_or(text);
    let before = text.len() - text_of.len();
    if let Some(raw) = text_of.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if let Some(body) = raw[hashes..].strip_prefix('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let n = body.find(&end).map_or(body.len(), |n| n + end.len());
            return Some(before + 1 + hashes + 1 + n);
        }
    }
    let quote = text_of.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let body = &text_of[1..];
    if quote == '\'' && !body.starts_with('\\') {
        // A lifetime has no second quote after one character.
        let c = body.chars().next()?;
        return body[c.len_utf8()..].starts_with('\'').then_some(before + 2 + c.len_utf8());
    }
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        if c == quote && !escaped {
            return Some(before + 2 + at);
        }
        escaped = c == '\\' && !escaped;
    }
    Some(text.len())
}

/// Code that is not for tests only: an item after `#[cfg(test)]` is left out.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    const CFG_TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept: Vec<Token> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let here = tokens[at..].iter().map(|token| &*token.text).take(CFG_TEST.len());
        if here.eq(CFG_TEST) {
            at = item_end(&tokens, at + CFG_TEST.len());
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// Where the item that begins here ends: behind its `;`, `,` or its closing bracket.
fn item_end(tokens: &[Token], begin: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(begin) {
        match &*token.text {
            "{" | "(" | "[" => depth += 1,
            "}" if depth == 1 => return at + 1,
            "}" | ")" | "]" if depth == 0 => return at,
            "}" | ")" | "]" => depth -= 1,
            ";" | "," if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    /// Checks a crate of these files, next to a root that declares `a` and `b`.
    fn circle(root: &str, a: &str, b: &str, expect: &[&str]) {
        let root = format!("mod a;\nmod b;\n{root}");
        let files = [
            ("crates/x/src/lib.rs", &*root),
            ("crates/x/src/a.rs", a),
            ("crates/x/src/b.rs", b),
            ("crates/x/src/a/inner.rs", "use super::A;\nuse crate::b::B;"),
        ];
        check(modules_form_no_circles, &files, expect);
    }

    #[test]
    fn modules_that_import_each_other_are_found_with_the_lines_of_their_imports() {
        let found = "crates/x/src/a.rs:0: modules import each other: \
                     a -> b (crates/x/src/a.rs:1) -> a (crates/x/src/b.rs:2)";
        circle("", "use crate::b::B;", "\nuse super::a::{self, A as C};", &[found]);
        circle("", "use crate::b::B;", "\nfn f() -> crate::a::A {}", &[found]);
        circle("", "use crate::b::B;", "use crate::{\n    a::A, b};", &[found]);
    }

    #[test]
    fn a_name_that_the_root_re_exports_is_imported_from_the_module_that_defines_it() {
        let found = ["crates/x/src/a.rs:0: modules import each other: a -> b"];
        circle("pub use a::A;", "use crate::b::B;\npub struct A;", "use crate::A;", &found);
        circle("pub use a::*;", "use crate::b::B;\npub struct A;", "use crate::A;", &found);
        circle("pub struct A;", "use crate::b::B;", "use crate::A;", &[]);
    }

    #[test]
    fn a_circle_by_way_of_a_child_is_found_and_a_child_may_use_its_parents() {
        circle("", "mod inner;\npub struct A;", "", &[]);
        let found = "crates/x/src/a.rs:0: modules import each other: \
                     a -> a::inner (crates/x/src/a.rs:2) -> b (crates/x/src/a/inner.rs:2) -> a";
        circle("", "mod inner;\npub use inner::I;", "use crate::a::A;", &[found]);
    }

    #[test]
    fn tests_comments_and_literals_import_nothing() {
        for b in [
            "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}",
            "#[cfg(test)]\nuse crate::a::A;",
            "// use crate::a::A;",
            "/// [`A`](crate::a::A)\nstruct B;",
            "const B: &str = \"use crate::a::A;\";",
            "const B: &str = r#\"\"use crate::a::A;\"#;",
            "const B: [char; 2] = ['\"', '\\''];\n// crate::a::A",
            "fn b<'a>(a: &'a str) -> &'a str { a }",
        ] {
            circle("", "use crate::b::B;", b, &[]);
        }
    }
}
