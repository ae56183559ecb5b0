// Keeps the page of a served model fresh: with each snapshot it takes over what the server writes.

const LONGEST_WAIT_MS = 60_000;
const WORDS = { connecting: "Connecting", live: "Live", offline: "Offline, retrying", paused: "Paused" };

const byId = (id) => document.getElementById(id);
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

function listen() {
  stop();
  if (isPaused || document.hidden) return;
  show("connecting");
  source = new EventSource(byId("model").dataset.stream);
  source.addEventListener("open", () => {
    attempts = 0;
    show("live");
  });
  source.addEventListener("snapshot", (event) => {
    const { snapshot_id: snapshot, epoch } = JSON.parse(event.data);
    const { snapshot: shown, epoch: ours } = byId("model").dataset;
    if (String(snapshot) !== shown || epoch !== ours) takeOver();
  });
  source.addEventListener("error", () => {
    show("offline");
    // The browser comes back by itself after a lost connection, never after a refusal.
    if (source?.readyState === EventSource.CLOSED) retryLater();
  });
}

function retryLater() {
  clearTimeout(timer);
  if (isPaused) return;
  const wait = Math.min(1000 * 2 ** attempts, LONGEST_WAIT_MS);
  attempts += 1;
  timer = setTimeout(async () => (await takeOver()) && listen(), wait * (0.5 + Math.random() / 2));
}

// Answers false if it could not. Text of records is only ever text: the server has escaped it.
async function takeOver() {
  request.abort();
  request = new AbortController();
  const { signal } = request;
  try {
    const answer = await fetch(location.pathname, { headers: { Accept: "text/html" }, signal });
    // Signed out, or not served any more: the server says which.
    if ([401, 403, 404].includes(answer.status)) return location.reload();
    if (!answer.ok) throw new Error(answer.statusText);
    const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("model");
    const isNewer = next.dataset.snapshot !== byId("model").dataset.snapshot;
    const { scrollLeft, scrollTop } = byId("rows");
    const hasFocus = document.activeElement === byId("rows");
    byId("model").replaceWith(next);
    byId("rows").scrollTo(scrollLeft, scrollTop);
    if (hasFocus) byId("rows").focus({ preventScroll: true });
    if (isNewer) byId("status").textContent = `Rows of snapshot ${next.dataset.snapshot}.`;
    return true;
  } catch {
    if (!signal.aborted) {
      show("offline");
      retryLater();
    }
    return false;
  }
}

byId("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  byId("pause").textContent = isPaused ? "Resume" : "Pause";
  if (isPaused) {
    stop();
    show("paused");
  } else takeOver().then((done) => done && listen());
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) stop();
  else if (!isPaused) takeOver().then((done) => done && listen());
});
addEventListener("pageshow", (event) => {
  // The rows are of then, and whoever goes back may have signed out since: the server decides.
  if (event.persisted) location.reload();
});

byId("pause").hidden = false;
// How old the rows are is the server's to say, also where no snapshot comes any more.
setInterval(() => source && takeOver(), Math.max(Number(byId("model").dataset.interval), 30) * 1000);
listen();
