//! Tests of the Python package: its wheel is built, installed into an empty environment of each
//! version of Python, and used. Other tests use the wheel with the frameworks that the package has
//! adapters for: the scripted model accepts every request or reports why not.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use model_server::{Script, Server};
use tempfile::TempDir;

use crate::histories;
use crate::install;
use crate::process::{self, checked};

/// The versions of Python that the wheel is for.
pub const VERSIONS: [&str; 4] = ["3.10", "3.11", "3.12", "3.13"];

/// The number of random histories that are sent with each version.
const HISTORIES: u64 = 75;

/// A timeout that neither a test nor the build reaches, even on a machine with other work.
const TIMEOUT: Duration = Duration::from_secs(3_600);

/// The wheel, in a folder of its own.
pub struct Wheel {
    folder: TempDir,
    path: PathBuf,
}

impl Wheel {
    /// A wheel that is built already.
    ///
    /// # Errors
    ///
    /// If no temporary folder can be made.
    pub fn at(path: PathBuf) -> anyhow::Result<Wheel> {
        Ok(Wheel { folder: tempfile::tempdir()?, path })
    }

    /// Makes a wheel of the package and its native module, which cargo has built. maturin, which
    /// makes the wheels of a release, would compile the module and half of its dependencies again,
    /// with other features.
    ///
    /// # Errors
    ///
    /// If a file cannot be copied, or there is no `python3`.
    pub fn pack(module: &Path) -> anyhow::Result<Wheel> {
        let folder = tempfile::tempdir()?;
        let name = format!("epitome_context-{}", env!("CARGO_PKG_VERSION"));
        let about = format!("{name}.dist-info");
        let content = folder.path().join("content");
        fs::create_dir_all(content.join(&about))?;
        fs::create_dir(content.join("epitome"))?;
        for entry in fs::read_dir(root().join("crates/python/python/epitome"))? {
            let file = entry?.path();
            let end = file.extension().and_then(|end| end.to_str());
            if matches!(end, Some("py" | "pyi" | "typed")) {
                let name = file.file_name().context("a file has a name")?;
                fs::copy(&file, content.join("epitome").join(name))?;
            }
        }
        fs::copy(module, content.join("epitome/_native.abi3.so"))
            .with_context(|| module.display().to_string())?;
        for (file, text) in [
            (
                "METADATA",
                concat!(
                    "Metadata-Version: 2.1\nName: epitome-context\nVersion: ",
                    env!("CARGO_PKG_VERSION"),
                    "\n"
                ),
            ),
            ("WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n"),
            ("RECORD", ""),
        ] {
            fs::write(content.join(&about).join(file), text)?;
        }
        let path = folder.path().join(format!("{name}-py3-none-any.whl"));
        let mut zip = Command::new("python3");
        zip.args(["-m", "zipfile", "-c"]).arg(&path).args(["epitome", &about]);
        checked(zip.current_dir(content))?;
        Ok(Wheel { folder, path })
    }

    /// Installs the wheel, without the packages that it depends on, for the interpreter `python`.
    ///
    /// # Errors
    ///
    /// If the wheel cannot be installed.
    pub fn install(&self, python: &Path) -> anyhow::Result<()> {
        let install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index"];
        checked(Command::new(python).args(install).arg(&self.path)).map(drop)
    }

    /// Installs the wheel into an empty environment of a version of Python and runs the tests that
    /// need no other package. Returns what the tests printed; `None` if this machine does not have
    /// the version.
    ///
    /// # Errors
    ///
    /// If the wheel cannot be installed or a test fails.
    pub fn test(&self, version: &str) -> anyhow::Result<Option<String>> {
        let Some(python) = interpreter(version) else { return Ok(None) };
        let venv = self.folder.path().join(version);
        checked(Command::new(python).args(["-m", "venv"]).arg(&venv))?;
        let python = venv.join("bin/python");
        self.install(&python)?;
        let mut tests = self.tests(&python, &["test_context", "test_sessions"])?;
        // Each version sends other histories.
        let first = VERSIONS.iter().position(|it| *it == version).unwrap_or(0) as u64 * HISTORIES;
        tests.command.envs(histories::variables(&(first..first + HISTORIES)));
        Ok(Some(tests.run()?))
    }

    /// Checks the types of the package and of its tests, and runs the tests with the frameworks.
    /// Returns what the tests printed.
    ///
    /// # Errors
    ///
    /// If the frameworks or the wheel cannot be installed, a type is wrong, or a test fails.
    pub fn test_frameworks(&self) -> anyhow::Result<String> {
        let programs = install::python_frameworks()?;
        let python = programs.join("python");
        let place = self.install_for_frameworks()?;
        let tests = root().join("crates/python/tests");
        let mut mypy = Command::new(programs.join("mypy"));
        mypy.args(["--strict", "--cache-dir", "/dev/null"]).arg(place.join("epitome")).arg(&tests);
        checked(mypy.env("MYPYPATH", &place).current_dir(&place))?;
        let mut pyright = Command::new(programs.join("pyright"));
        pyright.arg("--pythonpath").arg(&python).arg(place.join("epitome"));
        checked(pyright.env("PYTHONPATH", &place).current_dir(&place))?;
        let mut tests = self.tests(&python, &["test_frameworks", "test_fleet", "test_docs"])?;
        tests.command.env("PYTHONPATH", &place);
        tests.run()
    }

    /// Runs the tests with LiteLLM's proxy. Returns what the tests printed.
    ///
    /// # Errors
    ///
    /// If the proxy or the wheel cannot be installed, or a test fails.
    pub fn test_litellm_proxy(&self) -> anyhow::Result<String> {
        let python = install::litellm_proxy()?.join("python");
        let place = self.install_for_frameworks()?;
        let mut tests = self.tests(&python, &["test_litellm_proxy"])?;
        tests.command.env("PYTHONPATH", &place);
        tests.run()
    }

    /// Installs the wheel into a folder and returns the folder, for the `PYTHONPATH` of the Python
    /// with the frameworks.
    ///
    /// # Errors
    ///
    /// If the frameworks or the wheel cannot be installed.
    pub fn install_for_frameworks(&self) -> anyhow::Result<PathBuf> {
        let python = install::python_frameworks()?.join("python");
        let place = self.folder.path().join("installed");
        if place.exists() {
            return Ok(place);
        }
        let install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"];
        checked(Command::new(python).args(install).arg(&place).arg(&self.path))?;
        Ok(place)
    }

    /// Lets each adapter of the wheel in `place` send the random histories with the numbers in
    /// `range`. Returns what the tests printed.
    ///
    /// # Errors
    ///
    /// If a history is refused, or a test fails otherwise.
    pub fn test_histories(&self, place: &Path, range: Range<u64>) -> anyhow::Result<String> {
        let python = install::python_frameworks()?.join("python");
        let names = ["-k", "random_history", "test_context", "test_frameworks"];
        let mut tests = self.tests(&python, &names)?;
        tests.command.env("PYTHONPATH", place).envs(histories::variables(&range));
        tests.run()
    }

    /// A command that runs the tests in `names`, with a home and a model of their own. A test that
    /// needs more of the model than a text sets its script.
    fn tests(&self, python: &Path, names: &[&str]) -> anyhow::Result<Tests> {
        let home = tempfile::tempdir()?;
        let server = Server::start(Script::default())?;
        let mut command = Command::new(python);
        command
            .args(["-m", "unittest"])
            .args(names)
            .env("TEST_SERVER", server.url())
            .env("TEST_SESSIONS", root().join("testing/fixtures/sessions"))
            .env(histories::THOUGHTS, histories::thoughts())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            // Otherwise LiteLLM loads the prices of models from the network.
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .env("HOME", home.path())
            .env("EPITOME_HOME", home.path().join("epitome"))
            .env_remove("EPITOME_WHEEL")
            .env_remove("ANTHROPIC_API_KEY")
            .env_remove("OPENAI_API_KEY")
            .current_dir(root().join("crates/python/tests"));
        Ok(Tests { command, server, home })
    }
}

/// A command that runs tests, with the server and the home that must exist while the tests run.
struct Tests {
    command: Command,
    server: Server,
    home: TempDir,
}

impl Tests {
    fn run(&mut self) -> anyhow::Result<String> {
        let finished = process::run(&mut self.command, TIMEOUT)?;
        ensure!(finished.success(), "{}{}", finished.stdout, finished.stderr);
        ensure!(self.home.path().exists(), "a test removed its home");
        let requests = self.server.exchanges().len();
        let line = finished.stderr.lines().find(|line| line.starts_with("Ran "));
        Ok(format!("{}, {requests} requests", line.unwrap_or("no test").to_owned()))
    }
}

/// A program of a version of Python: the one on the path, or pyenv's.
fn interpreter(version: &str) -> Option<PathBuf> {
    let name = format!("python{version}");
    let print = "import sys, venv; print(sys.executable)";
    let find = |pyenv: Option<&str>| {
        let mut python = Command::new(&name);
        python.args(["-c", print]).stderr(Stdio::null());
        python.envs(pyenv.map(|version| ("PYENV_VERSION", version)));
        let output = python.output().ok().filter(|output| output.status.success())?;
        Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
    };
    // The program on the path may be a shim of pyenv, which runs a version only if it is switched
    // on. So the second attempt switches it on.
    find(None).or_else(|| find(Some(version)))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
