(() => {
  "use strict";
  const one = (id) => document.getElementById(id);

  // The list follows what is typed and chosen; what is still being read comes by itself.
  const form = one("filter"), list = one("sessions"), hits = one("hits"), q = one("q");
  let asked = 0, waiting = 0, more = 0;
  const query = () => {
    const data = new URLSearchParams(new FormData(form));
    const usual = q.value.trim() ? "best" : "time";
    for (const [name, value] of [...data]) if (!value || name === "sort" && value === usual) data.delete(name);
    return data;
  };
  const refresh = async (data) => {
    const mine = ++asked;
    data.set("part", "list");
    try {
      const answer = await fetch(`?${data}`);
      if (!answer.ok || mine !== asked) return;
      list.innerHTML = await answer.text();
      dispatchEvent(new Event("epitome-changed"));
      again();
    } catch { /* The server ended. */ }
  };
  const again = () => {
    clearTimeout(waiting);
    if (!one("unread")) return;
    const data = new URLSearchParams(location.search);
    waiting = setTimeout(() => refresh(data), 700);
  };
  // What was said, found by the index: an answer that is no list of hits says nothing.
  const search = async (words) => {
    if (!words) { hits.hidden = true; hits.replaceChildren(); return; }
    try {
      const data = query();
      data.set("part", "hits");
      const answer = await fetch(`search?${data}`);
      if (!answer.ok || words !== q.value.trim()) return;
      hits.innerHTML = await answer.text();
      hits.hidden = false;
      clearTimeout(more);
      if (one("indexing")) more = setTimeout(() => search(q.value.trim()), 1000);
      dispatchEvent(new Event("epitome-changed"));
    } catch { /* The server ended. */ }
  };
  // With words the usual order is another than without.
  let had = q ? q.value.trim() : "";
  const reorder = () => {
    const has = q.value.trim(), sort = form.elements.sort;
    if (has && !had && sort.value === "time") sort.value = "best";
    if (!has && sort.value === "best") sort.value = "time";
    had = has;
  };
  const ask = () => {
    reorder();
    const data = query();
    history.replaceState(null, "", data.size ? `?${data}` : location.pathname);
    refresh(data);
    search(q.value.trim());
  };
  if (form) {
    let typing = 0;
    form.addEventListener("submit", (event) => { event.preventDefault(); ask(); });
    form.addEventListener("change", ask);
    q.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(ask, 150); });
    q.addEventListener("keydown", (event) => { if (event.key === "Escape") { q.value = ""; ask(); } });
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select")) return;
      const rows = [...list.querySelectorAll(".title")];
      const at = rows.indexOf(document.activeElement);
      if (event.key === "/") { event.preventDefault(); q.focus(); }
      if (event.key === "j") rows[Math.min(at + 1, rows.length - 1)]?.focus();
      if (event.key === "k") rows[Math.max(at - 1, 0)]?.focus();
    });
    again();
    if (one("indexing")) more = setTimeout(() => search(q.value.trim()), 1000);
  }
  // A page of figures is loaded again until all sessions are in them.
  if (!form && one("unread")) setTimeout(() => location.reload(), 1500);

  // Without a script there is nothing to press: the text can be selected.
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      } catch { button.textContent = "Select it, and copy"; }
    });
  }

  // A choice is a question; a button that writes is pressed once.
  for (const select of document.querySelectorAll("select[data-submit]")) {
    select.addEventListener("change", () => select.form.requestSubmit());
  }
  for (const form of document.querySelectorAll("form[method=post]")) {
    form.addEventListener("submit", () => {
      const button = form.querySelector("button");
      button.disabled = true;
      button.textContent += " …";
    });
  }

  // A session that is being written: what is new appears, and nothing moves that is being read.
  const main = one("content"), live = one("live");
  let source = null, stamp = main?.dataset.stamp;
  const element = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content.firstElementChild;
  };
  // What the reader unfolded stays so.
  const swap = (old, fresh) => {
    const opened = [...old.querySelectorAll("details")];
    [...fresh.querySelectorAll("details")].forEach((details, at) => {
      if (opened[at]) details.open = opened[at].open;
    });
    old.replaceWith(fresh);
  };
  const change = (event) => {
    const told = JSON.parse(event.data);
    stamp = event.lastEventId;
    const isAtEnd = innerHeight + scrollY >= document.body.scrollHeight - 80;
    const anchor = [...main.querySelectorAll(":scope > .turn")].find((turn) => turn.getBoundingClientRect().bottom > 0);
    const before = anchor?.getBoundingClientRect().top;
    const gone = new Set([...main.querySelectorAll(":scope > .turn")].map((turn) => turn.id));
    for (const id of told.order) {
      gone.delete(id);
      const old = one(id), html = told.turns[id];
      if (!html) continue;
      const fresh = element(html);
      if (old) swap(old, fresh); else { fresh.classList.add("new"); live.before(fresh); }
    }
    for (const id of gone) one(id)?.remove();
    const put = (selector, html, root) => {
      const old = root.querySelector(selector), fresh = html && element(html);
      if (old && fresh) swap(old, fresh); else if (fresh) root.append(fresh);
    };
    put(".timeline", told.timeline, document);
    put(":scope > .heading, :scope > h1", told.above, main);
    put(":scope > .between", told.below, main);
    const kept = anchor && one(anchor.id);
    if (kept && !isAtEnd) scrollBy(0, kept.getBoundingClientRect().top - before);
    live.classList.remove("off");
    live.textContent = told.is_last ? "Waiting for more" : "It goes on on the next page";
    dispatchEvent(new Event("epitome-changed"));
  };
  const follow = () => {
    source?.close();
    source = null;
    // A browser has six connections to a server, for all its windows: who is not seen needs none.
    if (document.hidden) return;
    source = new EventSource(`tail?${new URLSearchParams({ file: main.dataset.file, since: stamp })}`);
    source.addEventListener("open", () => { live.hidden = false; live.classList.remove("off"); live.textContent = "Waiting for more"; });
    source.addEventListener("changed", change);
    source.addEventListener("unreadable", (event) => { stamp = event.lastEventId; live.classList.add("off"); live.textContent = event.data; });
    source.addEventListener("error", () => { live.classList.add("off"); live.textContent = "epitome serve does not answer"; });
  };
  if (live) {
    follow();
    document.addEventListener("visibilitychange", follow);
  }
})();
