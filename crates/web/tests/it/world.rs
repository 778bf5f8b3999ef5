//! A home folder with sessions for each test, and a viewer that is called over HTTP.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use epitome::{Config, Settings};
use epitome_redact::{Finder, Person};
use epitome_tokens::Estimate;
use epitome_web::{Limits, Options, Server, Which};

/// How long a test waits for an expected event.
const PATIENCE: Duration = Duration::from_mins(1);

pub struct World {
    _dir: tempfile::TempDir,
    pub home: PathBuf,
    pub config: Config,
}

impl World {
    pub fn new() -> World {
        let dir = tempfile::tempdir().expect("a folder");
        let home = dir.path().canonicalize().expect("a folder");
        let mut config = Config::from_home(&home);
        config.home = home.join("epitome");
        config.settings = home.join("settings");
        let folders = [
            ("PI_CODING_AGENT_SESSION_DIR", "pi"),
            ("CLAUDE_CONFIG_DIR", "claude"),
            ("CODEX_HOME", "codex"),
        ];
        for (variable, folder) in folders {
            config.agents.variables.insert(variable.to_owned(), home.join(folder).into());
        }
        config.person = Person::default();
        World { _dir: dir, home, config }
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.home.join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        fs::write(&path, bytes).expect("a file");
        path
    }

    /// Writes a session to Claude Code's folder.
    pub fn claude(&self, id: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        self.write(&format!("claude/projects/-p/{id}.jsonl"), bytes)
    }

    /// Writes a session to pi's folder.
    pub fn pi(&self, id: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        self.write(&format!("pi/--p--/2026-11-18T12-00-00-000Z_{id}.jsonl"), bytes)
    }

    /// Sets the modification time of a session to `minutes` minutes ago.
    pub fn set_age(&self, path: &Path, minutes: u64) {
        let time = SystemTime::now() - Duration::from_mins(minutes);
        let file = fs::File::options().write(true).open(path).expect("a file");
        file.set_modified(time).expect("a time");
    }

    pub fn serve(&self, which: Which) -> Viewer {
        self.serve_within(which, Limits::default())
    }

    pub fn serve_within(&self, which: Which, limits: Limits) -> Viewer {
        let rules = epitome::redact::rules(&self.config, &[]).expect("rules");
        let options = Options {
            settings: Settings::load(&self.config, &[]).expect("settings"),
            config: self.config.clone(),
            which,
            finder: Some(Finder::new(rules).expect("rules that can be compiled")),
            counter: &const { Estimate::new() },
        };
        let server = Server::bind(options, 0).expect("a free port").with_limits(limits);
        let address = server.address();
        let (end, ended) = tokio::sync::oneshot::channel();
        let thread = std::thread::spawn(move || {
            server.run_until(async {
                ended.await.ok();
            })
        });
        Viewer { address, end: Some(end), thread: Some(thread) }
    }
}

/// A viewer that answers until it is dropped.
pub struct Viewer {
    /// The whole address, with the token.
    pub address: String,
    end: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Viewer {
    /// `127.0.0.1:PORT`.
    pub fn host(&self) -> &str {
        self.address.split('/').nth(2).expect("an address has a host")
    }

    /// `http://127.0.0.1:PORT`.
    pub fn origin(&self) -> String {
        format!("http://{}", self.host())
    }

    /// The path of a link in the list, with the token.
    pub fn path(&self, path: &str) -> String {
        let token = self.address.split('/').nth(3).expect("an address has a token");
        format!("/{token}/{path}")
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", &self.path(path), &[], "")
    }

    /// The list once every session is read: this is done in the background, so that the first
    /// responses may be incomplete.
    pub fn whole_list(&self) -> String {
        let mut lists = std::iter::repeat_with(|| self.get("").body);
        lists.find(|list| !list.contains("id=\"unread\"")).expect("it never ends")
    }

    /// Sends a form like a page of the viewer.
    pub fn post(&self, path: &str, form: &str) -> Answer {
        self.ask("POST", &self.path(path), &[("Origin", &self.origin())], form)
    }

    /// Sends any request; the headers replace those that a browser would send.
    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], form: &str) -> Answer {
        let mut stream = self.send(method, path, headers, form);
        let mut text = Vec::new();
        stream.read_to_end(&mut text).expect("an answer");
        let text = String::from_utf8(text).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    /// The server-sent events of a path, as lines, until this is dropped.
    pub fn follow(&self, path: &str) -> Events {
        let stream = self.send("GET", &self.path(path), &[], "");
        let mut lines = BufReader::new(stream).lines();
        let status = lines.next().expect("a status").expect("text");
        assert!(status.contains(" 200 "), "{status}");
        let (to, from) = mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if to.send(line).is_err() {
                    return;
                }
            }
        });
        Events(from)
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], form: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.host()).expect("the viewer listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a length of time");
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        let names = |name: &str| headers.iter().any(|(it, _)| it.eq_ignore_ascii_case(name));
        if !names("host") {
            request.push_str(&format!("Host: {}\r\n", self.host()));
        }
        if method == "POST" {
            request.push_str("Content-Type: application/x-www-form-urlencoded\r\n");
            request.push_str(&format!("Content-Length: {}\r\n", form.len()));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        write!(stream, "{request}\r\n{form}").expect("it is sent");
        stream
    }

    /// The addresses of the sessions in the list, in its order.
    pub fn sessions(&self, query: &str) -> Vec<String> {
        // Sessions are read in the background, and a list waits for them only for a moment.
        let mut lists = std::iter::repeat_with(|| self.get(query));
        let list = lists.find(|it| !it.body.contains("id=\"unread\"")).expect("a list");
        assert_eq!(list.status, 200, "{}", list.body);
        // Hits in messages are not part of the list, and appear once they are indexed.
        let (before, hits) = list.body.split_once("<section id=\"hits\"").expect("hits");
        let after = hits.split_once("</section>").expect("an end").1;
        let links = [before, after].into_iter().flat_map(|it| it.split("href=\"s/").skip(1));
        links.filter_map(|it| Some(format!("s/{}", it.split_once('"')?.0))).collect()
    }
}

impl Viewer {
    /// Stops the viewer. Returns how long that took.
    pub fn end(&mut self) -> Duration {
        let began = Instant::now();
        drop(self.end.take());
        let ended = self.thread.take().map(|thread| thread.join().expect("no panic"));
        assert!(matches!(ended, None | Some(Ok(()))), "it ends cleanly");
        began.elapsed()
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end();
        }
    }
}

/// Lines of a stream of events.
pub struct Events(mpsc::Receiver<String>);

impl Events {
    /// Whether more events may come.
    pub fn is_open(&self) -> bool {
        !matches!(self.0.try_recv(), Err(mpsc::TryRecvError::Disconnected))
    }

    /// The data of the next event with this name. Other lines are skipped.
    pub fn next(&self, name: &str) -> String {
        let mut is_ours = false;
        loop {
            let line = self.0.recv_timeout(PATIENCE).expect("an event");
            match line.strip_prefix("data: ") {
                Some(data) if is_ours => return data.to_owned(),
                Some(_) => is_ours = false,
                None => {
                    if let Some(event) = line.strip_prefix("event: ") {
                        is_ours = event == name;
                    }
                }
            }
        }
    }
}

/// Appends to a file, as an agent does.
pub fn append(path: &Path, bytes: &[u8]) {
    let mut file = fs::OpenOptions::new().append(true).open(path).expect("a file");
    file.write_all(bytes).expect("it is written");
}
