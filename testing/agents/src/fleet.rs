//! Tests of `epitome.fleet` on real engines. Each engine runs its script of `examples/fleet` in an
//! empty environment, on sessions made from recorded ones, and must have the same rows as one
//! process.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::process::checked;
use crate::python::Wheel;

/// An engine, and what is installed for it in addition to `pyarrow`.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    /// The name of the engine's script in `examples/fleet`, without `_fleet.py`.
    pub name: &'static str,
    packages: &'static [&'static str],
}

/// The engines. In an engine with worker processes, a worker is killed in the middle of the run.
pub const ENGINES: [Engine; 5] = [
    Engine { name: "duckdb", packages: &["duckdb==2.0.1"] },
    Engine { name: "polars", packages: &["polars==2.1.0"] },
    Engine { name: "daft", packages: &["daft==0.7.26"] },
    Engine { name: "ray", packages: &["ray[data]==2.60.0"] },
    Engine { name: "spark", packages: &["pyspark==4.3.0", "pandas==3.1.1"] },
];

/// The newest version of `pyarrow` that all engines accept: Daft requires an older one than the
/// newest.
const PYARROW: &str = "pyarrow==25.0.1";

/// Sessions in files, and what one process makes of them.
pub struct Fleet {
    wheel: Wheel,
    folder: TempDir,
}

impl Fleet {
    /// Makes `count` sessions from recorded ones (`recorded`: the name and the bytes of each); then
    /// one process compacts and restores them all. Returns the output of the process too.
    ///
    /// # Errors
    ///
    /// If the packages cannot be installed, or a session is not restored byte for byte.
    pub fn make(
        wheel: Wheel,
        count: usize,
        recorded: &[(String, Vec<u8>)],
    ) -> anyhow::Result<(Fleet, String)> {
        let fleet = Fleet { wheel, folder: tempfile::tempdir()? };
        let folder = fleet.folder.path().join("recorded");
        fs::create_dir(&folder)?;
        for (name, bytes) in recorded {
            fs::write(folder.join(format!("{name}.jsonl")), bytes)?;
        }
        let venv = fleet.venv(&[])?;
        let mut command = fleet.check(&venv, "make");
        command.arg(fleet.folder.path()).arg(count.to_string());
        let printed = checked(&mut command)?;
        Ok((fleet, printed))
    }

    /// Runs the script of an engine, and compares its rows with those of one process. Returns the
    /// output. The environment of the engine is removed afterwards: some have hundreds of
    /// megabytes.
    ///
    /// # Errors
    ///
    /// If the engine cannot be installed, or its rows differ from those of one process.
    pub fn run(&self, engine: Engine) -> anyhow::Result<String> {
        let venv = self.venv(engine.packages)?;
        let mut command = self.check(&venv, engine.name);
        checked(command.arg(self.folder.path()))
    }

    /// A new environment with these packages and the wheel.
    fn venv(&self, packages: &[&str]) -> anyhow::Result<TempDir> {
        let venv = tempfile::tempdir()?;
        checked(Command::new("python3").args(["-m", "venv"]).arg(venv.path()))?;
        let python = venv.path().join("bin/python");
        let install = ["-m", "pip", "install", "--quiet", "--no-cache-dir", PYARROW];
        checked(Command::new(&python).args(install).args(packages))?;
        self.wheel.install(&python)?;
        Ok(venv)
    }

    /// A command that runs `check.py`. `what` is `make` or the name of an engine.
    fn check(&self, venv: &TempDir, what: &str) -> Command {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("fleet");
        let paths = [here.clone(), root.join("examples/fleet")].map(|it| it.display().to_string());
        let mut command = Command::new(venv.path().join("bin/python"));
        command
            .arg(here.join("check.py"))
            .arg(what)
            .env("PYTHONPATH", paths.join(":"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("HOME", self.folder.path())
            .current_dir(self.folder.path());
        command
    }
}
