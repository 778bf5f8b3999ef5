//! Tests in which each step of an installation or a removal fails once. After that, either the
//! settings are unchanged, or the record has the change.

use std::io;

use super::*;
use crate::step::{DiskStep, fault};

const SETTINGS: &str = "{\n  \"model\": \"opus\"\n}\n";

/// A function that is called before each step of writing to disk. It returns an error at step
/// number `n`, counted from 0.
fn failing(n: usize) -> impl FnMut(DiskStep) -> io::Result<()> + 'static {
    let mut seen = 0;
    move |_| {
        seen += 1;
        if seen == n + 1 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

/// A user's home with settings of Claude Code.
struct User {
    _dir: tempfile::TempDir,
    config: Config,
    settings: PathBuf,
}

impl User {
    fn new() -> User {
        let dir = tempfile::tempdir().expect("a folder");
        let user = dir.path().canonicalize().expect("a folder");
        let config =
            Config::from_folders(&user, &user.join("data"), &user.join("config"), |_| None);
        let settings = user.join(".claude/settings.json");
        fs::create_dir_all(user.join(".claude")).expect("a folder");
        fs::write(&settings, SETTINGS).expect("settings");
        User { _dir: dir, config, settings }
    }

    fn settings(&self) -> String {
        fs::read_to_string(&self.settings).expect("settings")
    }

    fn install(&self) -> Install {
        let asked = HookRequest::default();
        Install::plan(&self.config, "claude", Path::new("/epitome"), &asked).expect("a plan")
    }

    fn uninstall(&self) -> Vec<Uninstall> {
        Uninstall::plan(&self.config, None, None, None).expect("a plan")
    }

    /// Uninstalls everything, and checks that the settings are as they were at first.
    #[track_caller]
    fn check_taken_back(&self, step: usize) {
        for undo in self.uninstall() {
            undo.carry_out(&self.config).expect("it is taken back");
        }
        assert_eq!(self.settings(), SETTINGS, "step {step}");
    }
}

/// Calls `each` with the number of the step that is to fail: 0, 1, 2 and so on, until 21 calls did
/// not fail. `each` returns whether the step failed. Returns the number of steps that failed.
fn every_step(mut each: impl FnMut(usize) -> bool) -> usize {
    let (mut n, mut failures) = (0, 0);
    while n <= failures + 20 {
        failures += usize::from(each(n));
        n += 1;
    }
    failures
}

#[test]
fn an_installation_that_fails_changes_no_settings() {
    let failures = every_step(|n| {
        let user = User::new();
        let plan = user.install();
        let done = fault::with(failing(n), || plan.carry_out(&user.config));
        match &done {
            Ok(_) => assert_ne!(user.settings(), SETTINGS, "step {n}"),
            Err(err) => assert_eq!(user.settings(), SETTINGS, "step {n}: {err:?}"),
        }
        user.check_taken_back(n);
        done.is_err()
    });
    assert!(failures > 8, "{failures} steps");
}

#[test]
fn what_an_uninstallation_that_fails_leaves_is_taken_back_by_the_next() {
    let failures = every_step(|n| {
        let user = User::new();
        user.install().carry_out(&user.config).expect("it is installed");
        let installed = user.settings();
        let plan = user.uninstall().remove(0);
        let done = fault::with(failing(n), || plan.carry_out(&user.config));
        let expect = if done.is_ok() { SETTINGS } else { installed.as_str() };
        assert_eq!(user.settings(), expect, "step {n}: {done:?}");
        user.check_taken_back(n);
        done.is_err()
    });
    assert!(failures > 4, "{failures} steps");
}
