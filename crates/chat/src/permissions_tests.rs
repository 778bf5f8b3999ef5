//! What is allowed, asked and refused.

use super::*;

const ROOT: &str = "/home/me/project";

fn read(path: &str) -> Access {
    Access::Read(path.into())
}

fn write(path: &str) -> Access {
    Access::Write(path.into())
}

fn shell(command: &str) -> Access {
    Access::Shell(command.into())
}

fn permissions(rules: &[&str]) -> Permissions {
    let rules = rules.iter().map(|rule| Rule::allow(rule).unwrap());
    Permissions::new(ROOT.into()).with_rules(rules)
}

#[test]
fn only_reading_inside_the_project_is_free() {
    for (access, expect) in [
        (Access::Own, Verdict::Allow),
        (read("/home/me/project"), Verdict::Allow),
        (read("/home/me/project/src/a.rs"), Verdict::Allow),
        (read("/home/me/project2/a.rs"), Verdict::Ask),
        (read("/etc/passwd"), Verdict::Ask),
        (write("/home/me/project/a.rs"), Verdict::Ask),
        (write("/home/me/.bashrc"), Verdict::Ask),
        (shell("ls"), Verdict::Ask),
    ] {
        assert_eq!(permissions(&[]).judge(&access), expect, "{access:?}");
        let yes = permissions(&[]).with_yes(true).judge(&access);
        assert_eq!(yes, Verdict::Allow, "{access:?}");
    }
}

#[test]
fn what_the_system_makes_up_is_in_no_project() {
    let everything = Permissions::new("/".into());
    assert_eq!(everything.judge(&read("/srv/a")), Verdict::Allow);
    for path in ["/proc/7/environ", "/proc", "/dev/fd/0", "/sys/a"] {
        assert_eq!(everything.judge(&read(path)), Verdict::Ask, "{path}");
    }
}

#[test]
fn a_rule_for_commands_is_about_plain_commands_only() {
    let permissions = permissions(&["shell: cargo test", "shell: ls"]);
    for (command, expect) in [
        ("cargo test", Verdict::Allow),
        ("cargo  test --lib a::b", Verdict::Allow),
        ("cargo build", Verdict::Ask),
        ("cargo", Verdict::Ask),
        ("ls -la src", Verdict::Allow),
        ("lsof", Verdict::Ask),
        ("ls; rm -rf /", Verdict::Ask),
        ("ls && rm a", Verdict::Ask),
        ("ls | sh", Verdict::Ask),
        ("ls $(rm a)", Verdict::Ask),
        ("ls `rm a`", Verdict::Ask),
        ("ls > a", Verdict::Ask),
        ("ls < a", Verdict::Ask),
        ("ls &", Verdict::Ask),
        ("ls\nrm a", Verdict::Ask),
        ("ls ${IFS}a", Verdict::Ask),
        ("ls \\\nrm", Verdict::Ask),
        ("PATH=. ls", Verdict::Ask),
        ("cargo\ttest", Verdict::Allow),
        ("cargo\u{a0}test", Verdict::Ask),
        ("cargo\u{2003}test", Verdict::Ask),
        ("cargo test\u{3000}x", Verdict::Ask),
        ("ls \u{2028}rm", Verdict::Ask),
    ] {
        assert_eq!(permissions.judge(&shell(command)), expect, "{command}");
    }
}

#[test]
fn rules_that_would_allow_more_than_they_say_are_none() {
    for text in ["", "shell:", "shell: ", "shell: ls;", "shell: $x", "read", "write /etc", "*"] {
        assert_eq!(Rule::allow(text), Err(BadRule(text.to_owned())), "{text}");
        assert_eq!(Rule::deny(text), Err(BadRule(text.to_owned())), "{text}");
    }
}

#[test]
fn always_and_never_are_about_the_like_and_no_more() {
    let (file, hook) = ("/home/me/project/a.rs", "/home/me/project/.git/hooks/pre-commit");
    for (asked, like, unlike) in [
        (write(file), write("/home/me/project/b/c.rs"), write("/home/me/a.rs")),
        (write(file), write("/home/me/project/b.rs"), write(hook)),
        (write(file), write("/home/me/project/b.rs"), write("/home/me/project/sub/.GIT/config")),
        (write(hook), write(hook), write(file)),
        (write("/srv/a"), write("/srv/a"), write("/srv/b")),
        (read("/etc/hosts"), read("/etc/hosts"), read("/etc/passwd")),
        (read("/usr/include"), read("/usr/include/a.h"), read("/usr/includes")),
        (shell("ls; ls"), shell("ls; ls"), shell("ls; rm a")),
    ] {
        let mut permissions = permissions(&[]);
        assert_eq!(permissions.answer(&asked, Answer::Always), Verdict::Allow);
        assert_eq!(permissions.judge(&like), Verdict::Allow, "{like:?}");
        assert_eq!(permissions.judge(&unlike), Verdict::Ask, "{unlike:?}");
        let never = permissions.answer(&asked, Answer::Never);
        assert_eq!(never, Verdict::Deny(denied(&asked)));
        assert_eq!(permissions.judge(&like), Verdict::Deny(denied(&like)), "{like:?}");
        // What the user refused stays refused, even with `--yes`.
        let yes = permissions.with_yes(true);
        assert_eq!(yes.judge(&like), Verdict::Deny(denied(&like)), "{like:?}");
    }
}

#[test]
fn an_answer_for_once_is_not_remembered() {
    let mut permissions = permissions(&[]);
    for answer in [Answer::Once, Answer::No, Answer::Unattended] {
        let allowed = permissions.answer(&shell("ls"), answer) == Verdict::Allow;
        assert_eq!(allowed, answer == Answer::Once);
        assert_eq!(permissions.judge(&shell("ls")), Verdict::Ask);
    }
}

#[test]
fn a_rule_that_refuses_holds_against_rules_that_allow_and_a_yes() {
    let refused = ["shell: git push", "write"].map(|rule| Rule::deny(rule).unwrap());
    let permissions = permissions(&["shell: git", "write"]).with_rules(refused).with_yes(true);
    for (access, expect) in [
        (shell("git status"), true),
        (shell("git push"), false),
        (shell("git push --force origin"), false),
        (shell("cd sub && git push"), false),
        (shell("echo $(git  push)"), false),
        (shell("sh -c 'git push'"), false),
        (shell("git pushed"), true),
        (shell("git -C . push"), false),
        (shell("git -c a=b push"), false),
        (shell("git --no-pager push"), false),
        (shell("g\\it push"), false),
        (shell("gi\"\"t push"), false),
        (shell("git pu''sh"), false),
        (shell("git p\\ush"), false),
        (shell("git \\\n push"), false),
        (shell("/usr/bin/git push"), false),
        (shell("git\u{a0}push"), false),
        (shell("git log --grep push"), true),
        (shell("git log; echo push"), true),
        // Rules about words do not know how a shell expands them.
        (shell("x=push; git $x"), true),
        (write("/home/me/project/a.rs"), false),
        (write("/home/me/project/.git/config"), false),
        (write("/srv/a"), false),
        (read("/home/me/project/a.rs"), true),
    ] {
        let expect = if expect { Verdict::Allow } else { Verdict::Deny(denied(&access)) };
        assert_eq!(permissions.judge(&access), expect, "{access:?}");
    }
}

#[test]
fn files_that_change_together_are_judged_one_by_one() {
    let patch = |paths: &[&str]| Access::Patch(paths.iter().map(PathBuf::from).collect());
    let (inside, hook, outside) =
        ("/home/me/project/a.rs", "/home/me/project/.git/hooks/x", "/srv/a");
    for (paths, scope, like) in [
        (&[inside][..], "writing in this project", Verdict::Allow),
        (&[inside, outside], "writing these files", Verdict::Allow),
        (&[hook], "writing this file", Verdict::Ask),
    ] {
        let mut permissions = permissions(&[]);
        let access = patch(paths);
        assert_eq!(permissions.judge(&access), Verdict::Ask);
        assert_eq!(permissions.scope_of(&access), scope);
        assert_eq!(permissions.answer(&access, Answer::Always), Verdict::Allow);
        assert_eq!(permissions.judge(&access), Verdict::Allow, "{paths:?}");
        assert_eq!(permissions.judge(&patch(&[inside])), like, "{paths:?}");
        assert_eq!(permissions.judge(&patch(&[inside, "/srv/b"])), Verdict::Ask, "{paths:?}");
        permissions.answer(&write(paths[0]), Answer::Never);
        assert!(matches!(permissions.judge(&access), Verdict::Deny(_)), "{paths:?}");
    }
    assert_eq!(permissions(&["write"]).judge(&patch(&[inside, hook])), Verdict::Ask);
    assert_eq!(permissions(&["write"]).judge(&patch(&[inside])), Verdict::Allow);
}

#[test]
fn a_rule_for_an_mcp_server_is_about_its_tools_or_one_of_them() {
    let access =
        |server: &str, tool: &str| Access::Mcp { server: server.into(), tool: tool.into() };
    let allowed = permissions(&["mcp__git", "mcp__web__search"]);
    for (access, expect) in [
        (access("git", "log"), Verdict::Allow),
        (access("github", "log"), Verdict::Ask),
        (access("web", "search"), Verdict::Allow),
        (access("web", "search_all"), Verdict::Ask),
    ] {
        assert_eq!(allowed.judge(&access), expect, "{access:?}");
    }
    let denied = allowed.with_rules([Rule::deny("mcp__git__push").unwrap()]).with_yes(true);
    let why = "Not permitted: the user does not allow to call push of the MCP server git.";
    assert_eq!(denied.judge(&access("git", "push")), Verdict::Deny(why.to_owned()));
    assert_eq!(denied.judge(&access("git", "log")), Verdict::Allow);
    let mut asked = permissions(&[]);
    assert_eq!(asked.scope_of(&access("git", "log")), "this tool");
    asked.answer(&access("git", "log"), Answer::Always);
    assert_eq!(asked.judge(&access("git", "log")), Verdict::Allow);
    assert_eq!(asked.judge(&access("git", "push")), Verdict::Ask);
    for bad in ["mcp__", "mcp____x", "mcp__a__", "mcp__a b", "mcp__*", "mcp: git"] {
        assert_eq!(Rule::allow(bad), Err(BadRule(bad.to_owned())));
    }
}
