
(() => {
  "use strict";
  const one = (id) => document.getElementById(id);
  const root = document.documentElement;
  const main = one("content");

  // Light and dark: the system decides until somebody else does.
  const stored = (value) => {
    try {
      if (value) localStorage.setItem("epitome-theme", value);
      return localStorage.getItem("epitome-theme");
    } catch { return null; }
  };
  const wear = (theme) => { root.classList.toggle("dark", theme === "dark"); root.classList.toggle("light", theme === "light"); };
  if (stored()) wear(stored());
  one("theme")?.addEventListener("click", () => {
    const isDark = root.classList.contains("dark")
      || !root.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches;
    wear(isDark ? "light" : "dark");
    stored(isDark ? "light" : "dark");
  });

  // Times in the reader's own zone.
  const localTimes = () => {
    for (const time of document.querySelectorAll("time[datetime]:not([title])")) {
      const when = new Date(time.dateTime);
      if (Number.isNaN(when.getTime())) continue;
      const short = time.textContent.length <= 5;
      const clock = { hour: "2-digit", minute: "2-digit" };
      const next = time.nextSibling;
      if (next && next.nodeType === 3 && next.data === " UTC") next.data = "";
      time.title = time.dateTime;
      time.textContent = when.toLocaleString(undefined,
        short ? clock : { year: "numeric", month: "short", day: "numeric", ...clock });
    }
  };

  // A link to what is folded unfolds it.
  const reveal = (element) => {
    for (let at = element; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  };
  const toHash = () => {
    let id = "";
    try { id = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const target = id && one(id);
    if (!target) return;
    reveal(target.querySelector(":scope > details") ?? target);
    target.scrollIntoView({ block: "start" });
  };
  addEventListener("hashchange", toHash);
  toHash();

  const unfold = one("unfold");
  unfold?.addEventListener("click", () => {
    const open = unfold.getAttribute("aria-pressed") !== "true";
    for (const details of main.querySelectorAll("details")) details.open = open;
    unfold.setAttribute("aria-pressed", String(open));
    unfold.textContent = open ? "Fold all" : "Unfold all";
  });
  addEventListener("beforeprint", () => {
    for (const details of main.querySelectorAll("details")) details.open = true;
  });

  // Search: on an index it hides what does not match, on a session it leads from match to match.
  const find = one("find"), found = one("found"), back = one("back"), next = one("next");
  const sessions = [...document.querySelectorAll(".session")];
  let matches = [], current = -1;
  const filter = (query) => {
    let n = 0;
    for (const session of sessions) {
      session.hidden = !session.textContent.toLowerCase().includes(query);
      n += session.hidden ? 0 : 1;
    }
    found.textContent = query ? `${n} of ${sessions.length}` : "";
  };
  const search = (query) => {
    matches = []; current = -1;
    if (query.length > 1) {
      const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node && matches.length < 5000; node = walker.nextNode()) {
        const text = node.data.toLowerCase();
        for (let at = text.indexOf(query); at >= 0; at = text.indexOf(query, at + query.length)) {
          const range = new Range();
          range.setStart(node, at);
          range.setEnd(node, Math.min(at + query.length, node.length));
          matches.push(range);
        }
      }
    }
    const none = !matches.length;
    found.textContent = query.length > 1 ? (none ? "nothing" : `${matches.length}`) : "";
    back.hidden = next.hidden = none;
    if (globalThis.Highlight) CSS.highlights.set("found", new Highlight(...matches));
    if (globalThis.Highlight && none) CSS.highlights.delete("current");
  };
  const go = (step) => {
    if (!matches.length) return;
    current = (current + step + matches.length) % matches.length;
    const range = matches[current];
    reveal(range.startContainer.parentElement);
    if (globalThis.Highlight) CSS.highlights.set("current", new Highlight(range));
    range.startContainer.parentElement.scrollIntoView({ block: "center" });
    found.textContent = `${current + 1} of ${matches.length}`;
  };
  let waiting = 0;
  find?.addEventListener("input", () => {
    clearTimeout(waiting);
    const query = find.value.trim().toLowerCase();
    waiting = setTimeout(() => (sessions.length ? filter(query) : search(query)), 120);
  });
  find?.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); go(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { find.value = ""; find.dispatchEvent(new Event("input")); find.blur(); }
  });
  back?.addEventListener("click", () => go(-1));
  next?.addEventListener("click", () => go(1));

  // Keys: / searches, j and k go from turn to turn.
  let turns = [], links = new Map(), watch = null;
  const here = () => turns.findLastIndex((turn) => turn.getBoundingClientRect().top < 90);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select")) return;
    if (event.key === "/") { event.preventDefault(); find?.focus(); }
    if (event.key === "j") turns[Math.min(here() + 1, turns.length - 1)]?.scrollIntoView();
    if (event.key === "k") turns[Math.max(here() - 1, 0)]?.scrollIntoView();
  });

  // The timeline says where one is, and is folded on a phone. A program that adds turns says so.
  const mark = () => {
    const turn = turns[Math.max(here(), 0)];
    for (const [id, link] of links) link.classList.toggle("here", id === turn?.id);
  };
  const learn = () => {
    localTimes();
    turns = [...document.querySelectorAll("main > .turn")];
    links = new Map([...document.querySelectorAll(".timeline a[href^='#']")].map((link) => [link.hash.slice(1), link]));
    if (!globalThis.IntersectionObserver) return;
    watch?.disconnect();
    watch = new IntersectionObserver(mark, { rootMargin: "-80px 0px -70% 0px" });
    for (const turn of turns) watch.observe(turn);
  };
  learn();
  addEventListener("epitome-changed", learn);
  if (turns.length && matchMedia("(max-width: 60rem)").matches) {
    const folded = document.querySelector(".timeline > details");
    if (folded) folded.open = false;
  }
})();
