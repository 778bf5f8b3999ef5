//! Checks that the imports between a crate's modules form no cycle.
//!
//! A module imports another one if a path in its code leads there: `use`, `crate::`, `super::`,
//! `self::`, or the name of a child or of an imported module. A name that is re-exported counts as
//! an import of the module that it comes from. Imports of a child from its parents do not count,
//! and neither does code that is compiled only for tests.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use syn::punctuated::Punctuated;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, Expr, Ident, ImplItemFn, Item, ItemMod, ItemUse, Macro, Path, Token, UseTree,
};

use super::{File, Findings, Repo};

/// No two modules of a crate import each other, directly or through others.
pub(super) fn modules_form_no_circles(repo: &Repo, findings: &mut Findings) {
    let is_root =
        |file: &&File| ["/src/lib.rs", "/src/main.rs"].iter().any(|it| file.path.ends_with(it));
    for root in repo.rust().filter(is_root) {
        let krate = Crate::read(repo, root, findings);
        let mut known: BTreeSet<&ModulePath> = BTreeSet::new();
        let imports = krate.imports();
        for from in krate.modules.keys() {
            let Some(circle) = shortest_circle(&imports, from) else { continue };
            if circle.iter().any(|module| known.contains(module)) {
                continue;
            }
            let mut text = name(from);
            for pair in circle.windows(2) {
                text.push_str(&format!(" -> {} (`{}`)", name(pair[1]), imports[pair[0]][pair[1]]));
            }
            let what = format!("modules import each other: {text}");
            findings.fail(&krate.modules[from].file, 0, what);
            known.extend(circle);
        }
    }
}

/// The path of a module: its names below the root of the crate.
type ModulePath = Vec<String>;

/// The imports of each module, each with the first path that leads there.
type Imports = BTreeMap<ModulePath, BTreeMap<ModulePath, String>>;

/// Maximum number of re-exports that are followed from a name.
const DEPTH: usize = 8;

/// The modules of a library or program.
struct Crate {
    modules: BTreeMap<ModulePath, Module>,
}

/// The names and paths in the code of a module.
#[derive(Default)]
struct Module {
    file: String,
    children: Vec<String>,
    /// The names that `use` introduces, with their paths.
    names: BTreeMap<String, Vec<String>>,
    /// Every path in the code.
    paths: Vec<Vec<String>>,
}

impl Crate {
    fn read(repo: &Repo, root: &File, findings: &mut Findings) -> Crate {
        let folder = root.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut modules = BTreeMap::new();
        let mut open = vec![(ModulePath::new(), root)];
        while let Some((path, file)) = open.pop() {
            let mut module = Module { file: file.path.clone(), ..Module::default() };
            match syn::parse_file(&file.text) {
                Ok(mut parsed) => module.visit_file_mut(&mut parsed),
                Err(err) => findings.fail(&file.path, 0, format!("is not Rust: {err}")),
            }
            for child in &module.children {
                let path = [&path[..], std::slice::from_ref(child)].concat();
                let base = format!("{folder}/{}", path.join("/"));
                let file = repo.file(&format!("{base}.rs"));
                let file = file.or_else(|| repo.file(&format!("{base}/mod.rs")));
                open.extend(file.map(|file| (path, file)));
            }
            modules.insert(path, module);
        }
        Crate { modules }
    }

    fn imports(&self) -> Imports {
        let mut imports = Imports::new();
        for (from, module) in &self.modules {
            let found = imports.entry(from.clone()).or_default();
            for path in &module.paths {
                let to = self.resolve(from, path, 0);
                if let Some(to) = to.filter(|to| !from.starts_with(to)) {
                    found.entry(to).or_insert_with(|| path.join("::"));
                }
            }
        }
        imports
    }

    /// The module that a path in the code of `at` leads to, or that contains its target; `None` if
    /// that is in another crate.
    fn resolve(&self, at: &[String], path: &[String], depth: usize) -> Option<ModulePath> {
        let (first, rest) = path.split_first()?;
        match &**first {
            "crate" => self.walk(&[], rest, depth),
            "self" => self.walk(at, rest, depth),
            "super" => self.walk(at, path, depth),
            child if self.child(at, child).is_some() => self.walk(at, path, depth),
            _ => {
                let named = self.modules[at].names.get(first)?;
                let is_other_crate = named[0] == *first || depth == DEPTH;
                if is_other_crate {
                    None
                } else {
                    self.resolve(at, &[named, rest].concat(), depth + 1)
                }
            }
        }
    }

    /// The module that a path leads to, starting in `at`.
    fn walk(&self, at: &[String], path: &[String], depth: usize) -> Option<ModulePath> {
        let Some((first, rest)) = path.split_first() else { return Some(at.to_owned()) };
        if first == "super" {
            return self.walk(&at[..at.len().checked_sub(1)?], rest, depth);
        }
        if let Some(child) = self.child(at, first) {
            return self.walk(&child, rest, depth);
        }
        let is_named = self.modules[at].names.contains_key(first);
        let named = if is_named { self.resolve(at, path, depth) } else { None };
        named.or_else(|| Some(at.to_owned()))
    }

    fn child(&self, at: &[String], name: &str) -> Option<ModulePath> {
        let path = [at, &[name.to_owned()]].concat();
        self.modules.contains_key(&path).then_some(path)
    }
}

fn name(path: &ModulePath) -> String {
    if path.is_empty() { "crate".into() } else { path.join("::") }
}

/// The shortest cycle of imports from a module back to itself, both ends included.
fn shortest_circle<'a>(imports: &'a Imports, from: &'a ModulePath) -> Option<Vec<&'a ModulePath>> {
    let mut ways = VecDeque::from([vec![from]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for to in way.last().and_then(|at| imports.get(*at)).into_iter().flat_map(BTreeMap::keys) {
            let longer = [&way[..], &[to]].concat();
            if to == from {
                return Some(longer);
            }
            if seen.insert(to) {
                ways.push_back(longer);
            }
        }
    }
    None
}

impl Module {
    /// Adds the names that a `use` introduces, below `prefix`.
    fn add_names(&mut self, prefix: &[String], tree: &UseTree) {
        let below = |ident: &Ident| [prefix, &[ident.to_string()]].concat();
        let (path, name) = match tree {
            UseTree::Path(path) => return self.add_names(&below(&path.ident), &path.tree),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.add_names(prefix, tree));
            }
            UseTree::Name(name) if name.ident == "self" => {
                (prefix.to_owned(), prefix.last().cloned())
            }
            UseTree::Name(name) => (below(&name.ident), Some(name.ident.to_string())),
            UseTree::Rename(name) if name.ident == "self" => {
                (prefix.to_owned(), Some(name.rename.to_string()))
            }
            UseTree::Rename(name) => (below(&name.ident), Some(name.rename.to_string())),
            UseTree::Glob(_) => (prefix.to_owned(), None),
        };
        self.names.extend(name.map(|name| (name, path.clone())));
        self.paths.push(path);
    }
}

impl VisitMut for Module {
    fn visit_item_mut(&mut self, item: &mut Item) {
        if !is_for_tests(attributes(item)) {
            visit_mut::visit_item_mut(self, item);
        }
    }

    fn visit_item_mod_mut(&mut self, module: &mut ItemMod) {
        if module.content.is_none() {
            self.children.push(module.ident.to_string());
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_use_mut(&mut self, item: &mut ItemUse) {
        self.add_names(&[], &item.tree);
    }

    fn visit_impl_item_fn_mut(&mut self, item: &mut ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            visit_mut::visit_impl_item_fn_mut(self, item);
        }
    }

    fn visit_path_mut(&mut self, path: &mut Path) {
        if path.segments.len() > 1 {
            self.paths.push(path.segments.iter().map(|part| part.ident.to_string()).collect());
        }
        visit_mut::visit_path_mut(self, path);
    }

    fn visit_macro_mut(&mut self, call: &mut Macro) {
        // The arguments of most macros are expressions.
        let args = call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
        args.into_iter().flatten().for_each(|mut arg| self.visit_expr_mut(&mut arg));
    }
}

/// The attributes of items of the kinds that may be compiled only for tests.
fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| {
        it.path().is_ident("cfg") && it.parse_args::<Ident>().is_ok_and(|name| name == "test")
    })
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
    fn modules_that_import_each_other_are_found_with_their_imports() {
        let found = "crates/x/src/a.rs:0: modules import each other: \
                     a -> b (`crate::b::B`) -> a (`";
        for b in [
            "use super::a::{self, A as C};",
            "fn f() -> crate::a::A {}",
            "use crate::{\n    a::A, b};",
            "use crate as x;\nuse x::a;",
            "fn f() {\n    println!(\"{}\", crate::a::f());\n}",
        ] {
            circle("", "use crate::b::B;", b, &[found]);
        }
        circle("", "use crate::b::B;", "use crate::a as c;", &[&format!("{found}crate::a`)")]);
    }

    #[test]
    fn a_name_that_the_root_re_exports_is_imported_from_the_module_that_defines_it() {
        let found = ["crates/x/src/a.rs:0: modules import each other: a -> b"];
        circle("pub use a::A;", "use crate::b::B;\npub struct A;", "use crate::A;", &found);
        circle("pub struct A;", "use crate::b::B;", "use crate::A;", &[]);
    }

    #[test]
    fn a_circle_by_way_of_a_child_is_found_and_a_child_may_use_its_parents() {
        circle("", "mod inner;\npub struct A;", "", &[]);
        let found = "crates/x/src/a.rs:0: modules import each other: \
                     a -> a::inner (`inner::I`) -> b (`crate::b::B`) -> a (`crate::a::A`)";
        circle("", "mod inner;\npub use inner::I;", "use crate::a::A;", &[found]);
    }

    #[test]
    fn tests_comments_and_literals_import_nothing() {
        for b in [
            "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}",
            "#[cfg(test)]\nuse crate::a::A;",
            "impl B {\n    #[cfg(test)]\n    fn b() -> crate::a::A {}\n}",
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
