//! A disk that fails at every step: settings are what they were, or what was put in is known.

use std::io;

use super::*;
use crate::step::{Step, fault};

const SETTINGS: &str = "{\n  \"model\": \"opus\"\n}\n";

/// Fails step number `n`. Says in `Err` that it came to that.
fn failing(n: usize) -> impl FnMut(Step) -> io::Result<()> + 'static {
    let mut seen = 0;
    move |_| {
        seen += 1;
        if seen == n + 1 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

#[test]
fn an_installation_that_fails_changes_no_settings() {
    let mut failures = 0;
    for n in 0.. {
        let dir = tempfile::tempdir().expect("a folder");
        let user = dir.path().canonicalize().expect("a folder");
        let config = Config::of(&user, &user.join("data"), &user.join("config"), |_| None);
        let file = user.join(".claude/settings.json");
        fs::create_dir_all(user.join(".claude")).expect("a folder");
        fs::write(&file, SETTINGS).expect("settings");
        let plan = Install::plan(&config, "claude", Path::new("/epitome"), &HookRequest::default());
        let plan = plan.expect("a plan");
        let done = fault::with(failing(n), || plan.carry_out(&config));
        let now = fs::read_to_string(&file).expect("settings");
        match &done {
            Ok(_) => assert_ne!(now, SETTINGS, "step {n}"),
            Err(err) => assert_eq!(now, SETTINGS, "step {n}: {err:?}"),
        }
        for undo in Uninstall::plan(&config, None, None, None).expect("a plan") {
            undo.carry_out(&config).expect("it is taken back");
        }
        assert_eq!(fs::read_to_string(&file).expect("settings"), SETTINGS, "step {n}: {done:?}");
        failures += usize::from(done.is_err());
        if done.is_ok() && n > failures + 20 {
            break;
        }
    }
    assert!(failures > 8, "{failures} steps");
}

#[test]
fn what_an_uninstallation_that_fails_leaves_is_taken_back_by_the_next() {
    let mut failures = 0;
    for n in 0.. {
        let dir = tempfile::tempdir().expect("a folder");
        let user = dir.path().canonicalize().expect("a folder");
        let config = Config::of(&user, &user.join("data"), &user.join("config"), |_| None);
        let file = user.join(".claude/settings.json");
        fs::create_dir_all(user.join(".claude")).expect("a folder");
        fs::write(&file, SETTINGS).expect("settings");
        let plan = Install::plan(&config, "claude", Path::new("/epitome"), &HookRequest::default());
        plan.expect("a plan").carry_out(&config).expect("it is installed");
        let installed = fs::read_to_string(&file).expect("settings");
        let plan = Uninstall::plan(&config, None, None, None).expect("a plan").remove(0);
        let done = fault::with(failing(n), || plan.carry_out(&config));
        let now = fs::read_to_string(&file).expect("settings");
        let expect = if done.is_ok() { SETTINGS } else { installed.as_str() };
        assert_eq!(now, expect, "step {n}: {done:?}");
        for undo in Uninstall::plan(&config, None, None, None).expect("a plan") {
            undo.carry_out(&config).expect("it is taken back");
        }
        assert_eq!(fs::read_to_string(&file).expect("settings"), SETTINGS, "step {n}: {done:?}");
        failures += usize::from(done.is_err());
        if done.is_ok() && n > failures + 20 {
            break;
        }
    }
    assert!(failures > 4, "{failures} steps");
}
