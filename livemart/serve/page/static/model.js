// Keeps the page of a served model, or of a dashboard, fresh: with each snapshot it takes over what the server writes.

const LONGEST_WAIT_MS = 60_000;
const PATIENCE_MS = 15_000;
const SPREAD_MS = 500;
const WORDS = { connecting: "Connecting", live: "Live", offline: "Offline, retrying", paused: "Paused" };
// What changes; the rest of the page keeps its place, its focus and what is selected in it.
const PARTS = ["about", "chart", "extent", "cells", "pages", "columns"];
// So long a changed row is marked.
const MARKED_MS = 4_000;

const byId = (id) => document.getElementById(id);
const main = document.querySelector("main");
let source = null;
let request = new AbortController();
let attempts = 0;
let timer = 0;
let isPaused = false;

function show(state) {
  byId("connection").dataset.state = state;
  byId("connection-word").textContent = WORDS[state];
}

function stop() {
  source?.close();
  source = null;
  clearTimeout(timer);
  request.abort();
}

function isOpen() {
  return source?.readyState === EventSource.OPEN;
}

function listen() {
  stop();
  if (isPaused || document.hidden) return;
  show("connecting");
  source = new EventSource(main.dataset.stream);
  source.addEventListener("open", () => {
    attempts = 0;
    show("live");
  });
  source.addEventListener("snapshot", (event) => {
    const { snapshot_id: snapshot, epoch } = JSON.parse(event.data);
    const { snapshot: shown, epoch: ours } = main.dataset;
    // Not all pages at the same moment.
    if (String(snapshot) !== shown || epoch !== ours) later(takeOver, Math.random() * SPREAD_MS);
  });
  source.addEventListener("error", () => {
    show("offline");
    // The browser comes back by itself after a lost connection, never after a refusal.
    if (source?.readyState === EventSource.CLOSED) retryLater();
  });
}

function later(action, wait) {
  clearTimeout(timer);
  timer = setTimeout(action, wait);
}

function retryLater() {
  if (isPaused || document.hidden) return;
  const wait = Math.min(1000 * 2 ** attempts, LONGEST_WAIT_MS);
  attempts += 1;
  later(takeOver, wait * (0.5 + Math.random() / 2));
}

// Pulls the page once; whoever is not listening by then does so again.
async function takeOver() {
  clearTimeout(timer);
  request.abort();
  request = new AbortController();
  const ours = request;
  const patience = setTimeout(() => ours.abort("no answer"), PATIENCE_MS);
  try {
    const answer = await fetch(location.pathname + location.search, { headers: { Accept: "text/html" }, signal: ours.signal });
    // Signed out, or not served any more: the server says which.
    if ([401, 403, 404].includes(answer.status)) return location.reload();
    if (!answer.ok) throw new Error(answer.statusText);
    paint(new DOMParser().parseFromString(await answer.text(), "text/html"));
    if (!isOpen()) return listen();
    attempts = 0;
    show("live");
  } catch {
    // Another pull or a pause has taken its place, unless it was given up for want of an answer.
    if (ours.signal.aborted && ours.signal.reason !== "no answer") return;
    show("offline");
    retryLater();
  } finally {
    clearTimeout(patience);
  }
}

// Text of records is only ever text: the server has escaped it.
function paint(next) {
  const { scrollLeft, scrollTop } = byId("rows") ?? main;
  const before = new Set(textsOf(byId("cells")));
  const panels = panelsOf(document);
  // Another dashboard by now.
  if (panels.join() !== panelsOf(next).join()) return location.reload();
  for (const name of [...PARTS.filter(byId), ...panels]) {
    const [part, newer] = [byId(name), next.getElementById(name)];
    // Whoever is at work in it keeps it.
    if (part.contains(document.activeElement) || part.innerHTML === newer.innerHTML) continue;
    part.replaceChildren(...newer.childNodes);
    part.hidden = newer.hidden;
  }
  byId("rows")?.scrollTo(scrollLeft, scrollTop);
  const { snapshot, epoch } = next.querySelector("main").dataset;
  const shown = main.dataset;
  if (snapshot !== shown.snapshot) {
    mark(before);
    byId("status").textContent = `Rows of snapshot ${snapshot}.`;
  }
  Object.assign(shown, { snapshot, epoch });
}

function panelsOf(page) {
  return [...page.querySelectorAll(".panels > .panel")].map(({ id }) => id);
}

function textsOf(body) {
  return [...(body?.rows ?? [])].map((row) => [...row.cells].map((cell) => cell.textContent).join("\0"));
}

// Marks for a moment the rows that were not there, or not so.
function mark(before) {
  const texts = textsOf(byId("cells"));
  const changed = [...(byId("cells")?.rows ?? [])].filter((_, place) => !before.has(texts[place]));
  for (const row of changed) row.classList.add("changed");
  setTimeout(() => changed.forEach((row) => row.classList.remove("changed")), MARKED_MS);
}

byId("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  byId("pause").textContent = isPaused ? "Resume" : "Pause";
  if (isPaused) {
    stop();
    show("paused");
  } else takeOver();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) stop();
  else if (!isPaused) takeOver();
});
addEventListener("pageshow", (event) => {
  // The rows are of then, and whoever goes back may have signed out since: the server decides.
  if (event.persisted) location.reload();
});

byId("pause").hidden = false;
// How old the rows are is the server's to say, also where no snapshot comes any more.
setInterval(() => isOpen() && takeOver(), Math.max(Number(main.dataset.interval), 30) * 1000);
listen();
