
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

  // Times in the reader's own zone, in the form that they have without a script.
  const two = (n) => String(n).padStart(2, "0");
  const day = (when) => `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())}`;
  const clock = (when) => `${two(when.getHours())}:${two(when.getMinutes())}`;
  const localTimes = () => {
    for (const time of document.querySelectorAll("time[datetime]:not([title])")) {
      const when = new Date(time.dateTime);
      if (Number.isNaN(when.getTime())) continue;
      const isClock = time.textContent.length <= 5;
      const next = time.nextSibling;
      if (next && next.nodeType === 3 && next.data === " UTC") next.data = "";
      time.title = time.dateTime;
      time.textContent = isClock ? clock(when) : `${day(when)} ${clock(when)}`;
    }
    let last = "";
    for (const old of document.querySelectorAll(".timeline .day")) old.remove();
    for (const time of document.querySelectorAll(".timeline time[title]")) {
      const row = document.createElement("li");
      row.className = "day";
      row.textContent = day(new Date(time.dateTime));
      if (row.textContent !== last) time.closest("li").before(row);
      last = row.textContent;
    }
  };

  // The filter: if no button is pressed everything is shown, else the kinds of those that are. Folds
  // around them are open as long.
  const chips = [...document.querySelectorAll("#kinds button")];
  let opened = [];
  const pressed = () => chips.filter((chip) => chip.getAttribute("aria-pressed") === "true");
  const sift = () => {
    const wanted = new Set(pressed().map((chip) => chip.dataset.show));
    const counts = new Map();
    for (const details of opened) details.open = false;
    opened = [];
    for (const block of main.querySelectorAll("[data-is]")) {
      const kinds = block.dataset.is.split(" ");
      for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1);
      block.classList.toggle("sifted", wanted.size > 0 && !kinds.some((kind) => wanted.has(kind)));
    }
    for (const group of main.querySelectorAll(".turn, .steps, .nested")) {
      const isShown = !wanted.size || group.querySelector("[data-is]:not(.sifted)");
      group.classList.toggle("sifted", !isShown);
      if (wanted.size && isShown && group.matches("details:not([open])")) {
        group.open = true;
        opened.push(group);
      }
    }
    for (const chip of chips) {
      const count = counts.get(chip.dataset.show) ?? 0;
      const number = chip.querySelector("span") ?? chip.appendChild(document.createElement("span"));
      number.textContent = ` ${count}`;
      chip.disabled = !count && chip.getAttribute("aria-pressed") !== "true";
    }
  };
  const press = (chosen) => {
    const at = turns[Math.max(here(), 0)], before = at?.getBoundingClientRect().top;
    for (const chip of chosen) chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
    sift();
    if (before < 0 && at.getClientRects().length) scrollBy(0, at.getBoundingClientRect().top - before);
    if (find?.value) search(find.value.trim().toLowerCase());
  };
  for (const chip of chips) chip.addEventListener("click", () => press([chip]));

  // A link to what is folded unfolds it, and one to what is filtered out ends the filter.
  const reveal = (element) => {
    if (element.closest(".sifted")) press(pressed());
    for (let at = element; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  };

  // The words that a search found are marked in the block that its hit leads to.
  const sought = (new URLSearchParams(location.search).get("mark") ?? "").toLowerCase()
    .match(/"[^"]+"|[^\s"]+/g)?.filter((word) => !/^(-|(agent|project|role|session):)/.test(word))
    .map((word) => word.replace(/"|\*$/g, "").trim()).filter(Boolean).slice(0, 20) ?? [];
  const marked = (block) => {
    const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
    const nodes = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) nodes.push(node);
    const marks = [];
    for (let node of nodes) {
      for (;;) {
        const text = node.data.toLowerCase();
        const found = sought.map((word) => [text.indexOf(word), word]).filter(([at]) => at >= 0)
          .sort(([one], [other]) => one - other)[0];
        if (!found || text.length !== node.data.length || marks.length >= 500) break;
        const word = node.splitText(found[0]);
        node = word.splitText(found[1].length);
        const box = document.createElement("mark");
        word.replaceWith(box);
        box.append(word);
        marks.push(box);
      }
    }
    return marks;
  };

  const toHash = () => {
    let id = "";
    try { id = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const target = id && one(id);
    if (!target) return;
    reveal(target.querySelector(":scope > details") ?? target);
    if (target.dataset.is?.includes("error")) error = target.querySelector(".failed") ?? target;
    const marks = sought.length ? [...target.querySelectorAll("mark")] : [];
    if (sought.length && !marks.length) marks.push(...marked(target));
    for (const mark of marks) reveal(mark);
    if (marks.length) marks[0].scrollIntoView({ block: "center" }); else target.scrollIntoView({ block: "start" });
  };

  // What scrolls within itself is reached by keys as well. To measure what is folded would take long.
  const reach = (root) => {
    for (const pre of root.querySelectorAll("pre:not([tabindex])")) {
      if (pre.closest("details:not([open])")) continue;
      if (pre.scrollHeight > pre.clientHeight || pre.scrollWidth > pre.clientWidth) pre.tabIndex = 0;
    }
  };
  main.addEventListener("toggle", (event) => reach(event.target), true);

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
  const all = one("all"), isPart = !!document.querySelector(".between");
  // So many of how many: the same before the first step as behind it.
  const tell = () => {
    const [most, where] = [matches.length >= MOST ? "+" : "", isPart ? " on this page" : ""];
    found.textContent = `${current < 0 ? "" : `${current + 1} of `}${matches.length}${most}`;
    const words = found.appendChild(document.createElement("span"));
    words.textContent = `${matches.length === 1 ? " match" : " matches"}${where}`;
  };
  const MOST = 5000;
  const search = (query) => {
    matches = []; current = -1;
    if (query.length > 1) {
      const unseen = pressed().length ? ".sr, .sifted" : ".sr";
      const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node && matches.length < MOST; node = walker.nextNode()) {
        const text = node.data.toLowerCase();
        if (!text.includes(query) || node.parentElement.closest(unseen)) continue;
        for (let at = text.indexOf(query); at >= 0; at = text.indexOf(query, at + query.length)) {
          const range = new Range();
          range.setStart(node, at);
          range.setEnd(node, Math.min(at + query.length, node.length));
          matches.push(range);
        }
      }
    }
    const none = !matches.length;
    if (query.length > 1) tell(); else found.textContent = "";
    if (all) {
      all.hidden = query.length < 2;
      all.href = all.dataset.search + encodeURIComponent(query);
    }
    back.hidden = next.hidden = none;
    if (globalThis.Highlight) CSS.highlights.set("found", new Highlight(...matches));
    if (globalThis.Highlight && none) CSS.highlights.delete("current");
  };
  const go = (step) => {
    if (!matches.length) return;
    current = current < 0 && step < 0 ? matches.length - 1 : (current + step + matches.length) % matches.length;
    const range = matches[current];
    reveal(range.startContainer.parentElement);
    if (globalThis.Highlight) CSS.highlights.set("current", new Highlight(range));
    range.startContainer.parentElement.scrollIntoView({ block: "center" });
    tell();
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

  // From one failed call to the next: from the one that is seen, or from the turn that is.
  let error = null;
  const toError = (step) => {
    const isSeen = (box) => box.height > 0 && box.bottom > 0 && box.top < innerHeight;
    const from = error?.isConnected && isSeen(error.getBoundingClientRect()) ? error : turns[Math.max(here(), 0)];
    const side = step > 0 ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING;
    const others = [...main.querySelectorAll(".failed")].filter((it) => from.compareDocumentPosition(it) & side);
    const next = step > 0 ? others[0] : others[others.length - 1];
    if (!next) { one(step > 0 ? "later" : "earlier")?.click(); return; }
    error = next;
    reveal(next);
    next.scrollIntoView({ block: "start" });
    next.querySelector("summary")?.focus({ preventScroll: true });
  };

  // Keys: the list of them is a dialog of the page.
  const keys = one("keys");
  one("help")?.addEventListener("click", () => keys.showModal());
  one("keys-close")?.addEventListener("click", () => keys.close());
  keys?.addEventListener("click", (event) => { if (event.target === keys) keys.close(); });
  let turns = [], links = new Map(), watch = null;
  const here = () => turns.findLastIndex((turn) => turn.getClientRects().length && turn.getBoundingClientRect().top < 90);
  const toTurn = (step) => {
    const shown = turns.filter((turn) => turn.getClientRects().length);
    const at = shown.indexOf(turns[here()]);
    shown[Math.max(0, Math.min(at + step, shown.length - 1))]?.scrollIntoView();
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select") || keys?.open) return;
    if (event.key === "/") { event.preventDefault(); find?.focus(); }
    if (event.key === "?" && keys) { event.preventDefault(); keys.showModal(); }
    if (!turns.length) return;
    if (event.key === "j") toTurn(1);
    if (event.key === "k") toTurn(-1);
    if (event.key === "n") toError(1);
    if (event.key === "p") toError(-1);
  });

  // The timeline says where one is, and is folded on a phone. A program that adds turns says so.
  const mark = () => {
    const turn = turns[Math.max(here(), 0)];
    for (const [id, link] of links) link.classList.toggle("here", id === turn?.id);
  };
  const learn = () => {
    localTimes();
    if (chips.length) sift();
    reach(main);
    turns = [...document.querySelectorAll("main > .turn")];
    links = new Map([...document.querySelectorAll(".timeline a[href^='#']")].map((link) => [link.hash.slice(1), link]));
    if (!globalThis.IntersectionObserver) return;
    watch?.disconnect();
    watch = new IntersectionObserver(mark, { rootMargin: "-80px 0px -70% 0px" });
    for (const turn of turns) watch.observe(turn);
  };
  learn();
  addEventListener("epitome-changed", learn);
  if (chips.length) one("kinds").hidden = false;
  addEventListener("hashchange", toHash);
  toHash();
  if (turns.length && matchMedia("(max-width: 60rem)").matches) {
    const folded = document.querySelector(".timeline > details");
    if (folded) folded.open = false;
  }
})();
