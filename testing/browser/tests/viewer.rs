//! Tests the viewer as a person uses it: in a real Chromium, at the address that the program
//! prints.
//!
//! `cargo lab e2e viewer` builds the program first, and reports it if there is no Chromium.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use browser::{Window, chromium};

const DESKTOP: (u32, u32) = (1280, 900);
const PHONE: (u32, u32) = (390, 844);
const CLAUDE: &str = "0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4";

/// A home folder with sessions, and the program that shows them.
struct Machine {
    home: tempfile::TempDir,
    program: Child,
    address: String,
}

impl Machine {
    /// Starts the program over these sessions of Claude Code.
    fn start(sessions: &[(&str, Vec<u8>)]) -> anyhow::Result<Machine> {
        let home = tempfile::tempdir()?;
        for (id, bytes) in sessions {
            let path = session(home.path(), id);
            fs::create_dir_all(path.parent().context("a folder")?)?;
            fs::write(path, bytes)?;
        }
        let program = std::env::var_os("EPITOME_PROGRAM")
            .context("EPITOME_PROGRAM does not name the program: run `cargo lab e2e viewer`")?;
        let mut program = Command::new(program)
            .arg("serve")
            .env_clear()
            .env("HOME", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut address = String::new();
        let printed = program.stdout.take().context("it is piped")?;
        BufReader::new(printed).read_line(&mut address)?;
        let address = address.trim().to_owned();
        ensure!(address.starts_with("http://127.0.0.1:"), "{address:?} was printed");
        Ok(Machine { home, program, address })
    }

    fn session(&self, id: &str) -> PathBuf {
        session(self.home.path(), id)
    }

    /// Keeps what all sessions are now.
    fn keep(&self) -> anyhow::Result<()> {
        let program = std::env::var_os("EPITOME_PROGRAM").context("the program is named")?;
        let mut keep = Command::new(program);
        keep.args(["keep", "--all", "--once"]).env_clear().env("HOME", self.home.path());
        let kept = keep.output()?;
        ensure!(kept.status.success(), "{kept:?}");
        Ok(())
    }

    /// Checks that only `http://127.0.0.1:PORT/TOKEN/` was requested.
    fn ensure_alone(&self, window: &Window) -> anyhow::Result<()> {
        let requests = window.requests();
        let is_ours = |it: &&String| it.starts_with(&self.address) || it.starts_with("data:");
        let others: Vec<&String> = requests.iter().filter(|it| !is_ours(it)).collect();
        ensure!(others.is_empty(), "the page asked others: {others:?}");
        ensure!(requests.len() > 3, "requests are not noted: {requests:?}");
        Ok(())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.program.kill().ok();
        self.program.wait().ok();
    }
}

fn session(home: &Path, id: &str) -> PathBuf {
    home.join(format!(".claude/projects/-srv-app/{id}.jsonl"))
}

/// Records of Claude Code, from the number, the role and the text of each message.
fn records(id: &str, messages: &[(usize, &str, &str)]) -> String {
    let record = |(n, role, text): &(usize, &str, &str)| {
        let parent = n.checked_sub(1).map(|n| format!("u{n}"));
        let record = serde_json::json!({
            "type": role, "uuid": format!("u{n}"), "parentUuid": parent, "sessionId": id,
            "cwd": "/srv/app", "timestamp": format!("2026-11-20T10:00:{n:02}Z"),
            "version": "2.1.329", "message": { "role": role, "content": text },
        });
        format!("{record}\n")
    };
    messages.iter().map(record).collect()
}

/// Writes a screenshot to the folder that `EPITOME_PICTURES` names, for people to look at.
fn picture(window: &mut Window, name: &str) -> anyhow::Result<()> {
    let folder = std::env::var_os("EPITOME_PICTURES").map(PathBuf::from);
    let own = tempfile::tempdir()?;
    let folder = folder.as_deref().unwrap_or(own.path());
    let png = window.picture(&folder.join(name))?;
    ensure!(png.starts_with(b"\x89PNG") && png.len() > 5_000, "{name}: {} bytes", png.len());
    Ok(())
}

#[test]
fn a_person_finds_reads_and_follows_a_session() -> anyhow::Result<()> {
    let other = "11111111-2222-4333-8444-555555555555";
    let short = [(0, "user", "Where does the kestrel nest?"), (1, "assistant", "In the belfry.")];
    let recorded = fixtures::get("claude", "pricing").bytes();
    let machine =
        Machine::start(&[(CLAUDE, recorded), (other, records(other, &short).into_bytes())])?;
    let mut window = Window::open(&chromium()?, DESKTOP)?;
    window.go(&machine.address)?;
    window.until("document.querySelectorAll('#sessions .row').length === 2")?;
    picture(&mut window, "list.png")?;

    // A click on a title opens the session.
    window.click("#sessions .row a.title")?;
    window.until("document.querySelector('main .turn') && document.readyState === 'complete'")?;
    picture(&mut window, "session.png")?;
    window.click("a.home")?;
    window.until("document.querySelector('#q') && document.readyState === 'complete'")?;

    // Words that are in no title are found, and the hit leads to the message.
    window.write("#q", "belfry")?;
    window.until("document.querySelector('#hits .hit mark')?.textContent === 'belfry'")?;
    picture(&mut window, "search.png")?;
    window.click("#hits .hit a")?;
    window.until(
        "location.hash === '#m1' \
         && document.getElementById('m1').innerText.includes('In the belfry.')",
    )?;
    let seen = "(() => { const at = document.getElementById('m1').getBoundingClientRect();
        return at.top >= 0 && at.bottom <= innerHeight; })()";
    window.until(seen)?;

    // What is appended appears.
    window.until("document.getElementById('live') && !document.getElementById('live').hidden")?;
    let mut file = OpenOptions::new().append(true).open(machine.session(other))?;
    file.write_all(records(other, &[(2, "user", "And the heron?")]).as_bytes())?;
    file.flush()?;
    window.until("document.getElementById('m2')?.innerText.includes('And the heron?')")?;
    file.write_all(records(other, &[(3, "assistant", "By the weir.")]).as_bytes())?;
    file.flush()?;
    window.until("document.getElementById('m3')?.innerText.includes('By the weir.')")?;
    picture(&mut window, "live.png")?;

    // By now it can be found, too.
    window.click("a.home")?;
    window.until("document.querySelector('#q') && document.readyState === 'complete'")?;
    window.write("#q", "weir")?;
    window.until("document.querySelector('#hits .hit mark')?.textContent === 'weir'")?;

    // On a phone nothing is wider than the window.
    window.resize(PHONE)?;
    window.until("document.documentElement.scrollWidth <= innerWidth")?;
    picture(&mut window, "phone.png")?;
    machine.ensure_alone(&window)
}

#[test]
fn a_person_reads_a_session_as_it_was_and_finds_a_deleted_one() -> anyhow::Result<()> {
    let recorded = fixtures::get("claude", "pricing").bytes();
    let lines: Vec<&[u8]> = recorded.split_inclusive(|byte| *byte == b'\n').collect();
    let machine = Machine::start(&[(CLAUDE, lines[..12].concat())])?;
    machine.keep()?;
    fs::write(machine.session(CLAUDE), &recorded)?;
    machine.keep()?;
    let mut window = open_session(&machine)?;
    window.click(".tools a[href=history]")?;
    window.until("document.querySelectorAll('.versions .row').length === 2")?;
    picture(&mut window, "history.png")?;
    window.click(".versions .row:last-child a.title")?;
    window.until("document.querySelector('main .then')?.innerText.startsWith('Version 1')")?;
    window.until("document.querySelector('main .turn')")?;
    picture(&mut window, "version.png")?;
    fs::remove_file(machine.session(CLAUDE))?;
    machine.keep()?;
    window.go(&machine.address)?;
    window.until("document.querySelector('.gone summary')")?;
    window.click(".gone summary")?;
    window.until("document.querySelector('.gone .row a.title').checkVisibility()")?;
    picture(&mut window, "deleted.png")?;
    window.click(".gone .row a.title")?;
    window.until("document.querySelectorAll('.versions .row').length === 3")?;
    window.until("document.querySelector('.commands code')?.innerText.endsWith('--at 2')")?;
    window.resize(PHONE)?;
    window.until("document.documentElement.scrollWidth <= innerWidth")?;
    picture(&mut window, "deleted-history.png")?;
    machine.ensure_alone(&window)
}

/// Opens the page of a recorded session.
fn open_session(machine: &Machine) -> anyhow::Result<Window> {
    let mut window = Window::open(&chromium()?, DESKTOP)?;
    window.go(&machine.address)?;
    window.click("#sessions .row a.title")?;
    window
        .until("document.readyState === 'complete' && !document.getElementById('kinds').hidden")?;
    Ok(window)
}

/// An expression for the number of visible elements.
fn seen(selector: &str) -> String {
    format!(
        "[...document.querySelectorAll('{selector}')].filter((it) => it.checkVisibility()).length"
    )
}

#[test]
fn a_person_sees_only_what_failed_and_goes_from_one_to_the_next() -> anyhow::Result<()> {
    let recorded = fixtures::get("claude", "pricing").bytes();
    let machine = Machine::start(&[(CLAUDE, recorded)])?;
    let mut window = open_session(&machine)?;
    let error = "#kinds [data-show=error]";
    window.until(&format!("document.querySelector('{error}').textContent === 'Errors 4'"))?;
    window.until(&format!("{} === 0 && {} > 5", seen("main .failed"), seen("main article")))?;
    window.click(error)?;
    window.until(&format!("document.querySelector('{error}').ariaPressed === 'true'"))?;
    window.until(&format!("{} === 4 && {} === 0", seen("main .failed"), seen("main article")))?;
    picture(&mut window, "errors.png")?;
    // The whole call is visible, including its result.
    window.click("main .failed summary")?;
    window.until(&format!("{} > 0", seen("main .failed .out")))?;
    window.click(error)?;
    window.until(&format!("{} === 0 && {} > 5", seen("main .failed"), seen("main article")))?;

    let is_at = |nth: usize| {
        format!(
            "(() => {{
               const it = document.querySelectorAll('main .failed')[{nth}];
               const {{ top }} = it.getBoundingClientRect();
               const isSeen = top > 0 && top < innerHeight;
               return it.open && it.contains(document.activeElement) && isSeen;
             }})()"
        )
    };
    window.value("scrollTo(0, 0)")?;
    for (key, nth) in [("n", 0), ("n", 1), ("n", 2), ("p", 1), ("p", 0), ("n", 1)] {
        window.press(key)?;
        window.until(&is_at(nth))?;
    }
    // The number above the session leads to the first failure, `n` to the next.
    // The page's listener runs after the address has changed, and before this listener.
    window.value(
        "addEventListener('hashchange', () => { document.body.dataset.led = location.hash })",
    )?;
    window.click(".figures a.bad")?;
    window.until("document.body.dataset.led === location.hash && location.hash !== ''")?;
    window
        .until("document.getElementById(location.hash.slice(1)).querySelector('.failed').open")?;
    window.press("n")?;
    window.until(&is_at(1))?;
    machine.ensure_alone(&window)
}

#[test]
fn a_person_searches_a_session_and_asks_for_the_keys() -> anyhow::Result<()> {
    let recorded = fixtures::get("claude", "pricing").bytes();
    let machine = Machine::start(&[(CLAUDE, recorded)])?;
    let mut window = open_session(&machine)?;
    window.press("?")?;
    window.until("document.getElementById('keys').open")?;
    picture(&mut window, "keys.png")?;
    window.press("Escape")?;
    window.until("!document.getElementById('keys').open")?;
    window.click("#help")?;
    window.until("document.getElementById('keys').open")?;
    window.click("#keys-close")?;
    window.until("!document.getElementById('keys').open")?;

    window.write("#find", "rate")?;
    window.until("/^[0-9]+ matches$/.test(document.getElementById('found').textContent)")?;
    let found = window.value("document.getElementById('found').textContent")?;
    window.press("Enter")?;
    let expect = format!("1 of {}", found.as_str().unwrap_or_default());
    window.until(&format!("document.getElementById('found').textContent === {expect:?}"))?;

    // Words are marked where a hit leads, and nowhere else.
    let address = window.value(
        "`${location.href.split(/[?#]/)[0]}?mark=role:user+%22this+morning%22+TESTS+-fail\
         #${document.querySelector('.msg.user').id}`",
    )?;
    window.go(address.as_str().unwrap_or_default())?;
    let marks = "[...document.querySelectorAll('mark')].map((it) => it.textContent).join()";
    window.until(&format!("{marks} === 'tests,this morning'"))?;
    machine.ensure_alone(&window)
}

#[test]
fn a_query_that_makes_no_sense_is_answered_in_words() -> anyhow::Result<()> {
    let machine =
        Machine::start(&[(CLAUDE, records(CLAUDE, &[(0, "user", "hello")]).into_bytes())])?;
    let mut window = Window::open(&chromium()?, DESKTOP)?;
    window.go(&machine.address)?;
    window.write("#q", "\"no end")?;
    window.until("document.getElementById('hits').innerText.includes('does not end')")
}

#[test]
fn a_hostile_session_runs_nothing() -> anyhow::Result<()> {
    let attack = "<script>window.pwned = 1; alert('gotcha')</script> \
        <img src=\"http://evil.example/p.png\" onerror=\"window.pwned = 2\"> \
        <svg onload=\"window.pwned = 3\"></svg> </article></main> \
        <iframe src=\"javascript:pwned=4\"></iframe> [click](javascript:window.pwned=5) \
        [data](data:text/html,<script>1</script>) \
        ![picture](http://evil.example/q.png) <style>@import 'http://evil.example/s.css'</style> \
        \"><a href=\"javascript:pwned=6\">link</a> cuckoo";
    let fence = format!("```html\n{attack}\n```\n\n{attack}");
    let records = records(CLAUDE, &[(0, "user", attack), (1, "assistant", &fence)]);
    let machine = Machine::start(&[(CLAUDE, records.into_bytes())])?;
    let mut window = Window::open(&chromium()?, DESKTOP)?;
    let inert = |window: &mut Window, place: &str| -> anyhow::Result<()> {
        let elements = "main script, main iframe, main object, main svg[onload], main style, \
            main link, main img:not([src^='data:']), [onerror], [onload], [onclick], \
            a[href^='javascript:' i], a[href^='data:' i]";
        let found = window.value(&format!(
            "[...document.querySelectorAll(\"{elements}\")].map((it) => it.outerHTML).join('\\n')"
        ))?;
        ensure!(found == "", "{place}: {found}");
        ensure!(window.value("String(window.pwned)")? == "undefined", "{place}: a script ran");
        Ok(())
    };
    window.go(&machine.address)?;
    window.until("document.querySelector('#sessions .row')")?;
    inert(&mut window, "the list")?;
    window.write("#q", "cuckoo")?;
    window.until("document.querySelectorAll('#hits .hit').length === 2")?;
    inert(&mut window, "the hits")?;
    window.click("#hits .hit a")?;
    window.until("document.querySelector('main .turn') && document.readyState === 'complete'")?;
    inert(&mut window, "the session")?;
    // Click on everything that looks like a link.
    let links = "main .md a:not([href^='http'])";
    window
        .value(&format!("document.querySelectorAll(\"{links}\").forEach((it) => it.click()), 1"))?;
    inert(&mut window, "the session, clicked through")?;
    ensure!(window.dialogs().is_empty(), "{:?}", window.dialogs());
    machine.ensure_alone(&window)
}
