// The connection: by push while a stream is open, by pull where it is not, and the age of what is shown.

import { removeChart } from "./chart.js";
import { byId, say, toggle, write } from "./dom.js";
import { get } from "./fetch.js";
import { paint } from "./figures.js";
import { addressOf, isChosen, isShown, page, serverNow, shown, takeTimes } from "./shown.js";
import { paintTrend } from "./trend.js";
import { ageWords, clock, count, money } from "./words.js";

const LONGEST_WAIT_MS = 60_000;
const SPREAD_MS = 500;
const WORDS = {
  loaded: "As loaded",
  connecting: "Connecting",
  live: "Live",
  stale: "Stale",
  offline: "Offline, retrying",
  retrying: "Retrying",
  paused: "Paused",
};

export const link = {
  source: null,
  state: "loaded",
  timer: 0,
  attempts: 0,
  isPaused: false,
  isSignedOut: false,
  isOld: !byId("stale").hidden,
  probedAt: performance.now(),
  lead: Date.now() - performance.now(),
  request: new AbortController(),
};

export function tick() {
  if (link.isSignedOut) return;
  const age = serverNow() - shown.checkedAt;
  const isOld = age >= shown.lateAfter * 1000;
  write(byId("age"), ageWords(age));
  write(byId("stale-age"), ageWords(age));
  byId("stale").hidden = !isOld;
  if (link.state === "live" || link.state === "stale") show(isOld ? "stale" : "live");
  if (isOld && !link.isOld) say(`These figures are old: the last update was ${ageWords(age)}.`);
  link.isOld = isOld;
  // The tab's own clock stands still while a device sleeps; a jump of the other one tells.
  const lead = Date.now() - performance.now();
  const hasSlept = Math.abs(lead - link.lead) > 30_000;
  link.lead = lead;
  // A connection can die without a word. When an update is overdue, one pull tells.
  const isOverdue = ["live", "stale"].includes(link.state) && age > 1.25 * shown.interval * 1000 + 5000;
  if (hasSlept && !link.isPaused) refresh();
  else if (isOverdue && performance.now() - link.probedAt > LONGEST_WAIT_MS * (1 + Math.random())) {
    link.probedAt = performance.now();
    refresh();
  }
}

export function show(state) {
  if (state === link.state) return;
  const before = link.state;
  link.state = state;
  byId("connection").dataset.state = state;
  const words = state === "paused" ? `Paused at ${clock(serverNow())}` : WORDS[state];
  write(byId("connection-word"), words);
  if (state === "paused" || state === "offline") say(`${words}.`);
  if (state === "live" && before === "offline") say("Live again.");
}

export function listen() {
  stopListening();
  if (link.isPaused || link.isSignedOut || document.hidden) return;
  if (!["offline", "retrying"].includes(link.state)) show("connecting");
  const path = `${addressOf("/v1/restaurants")}/stream`;
  const source = new EventSource(`${path}?window=${shown.window}&after=${shown.snapshot}`);
  link.source = source;
  source.addEventListener("open", () => {
    link.attempts = 0;
    link.probedAt = performance.now();
    clearProblem();
    show("live");
    tick();
  });
  source.addEventListener("snapshot", (event) => receive(JSON.parse(event.data)));
  source.addEventListener("checked", (event) => {
    const head = JSON.parse(event.data);
    if (!isShown(head)) return;
    takeTimes(head);
    tick();
  });
  source.addEventListener("error", () => {
    // The browser comes back by itself after a lost connection, never after a refusal.
    if (source.readyState !== EventSource.CLOSED) return show("offline");
    if (link.state !== "offline") show("retrying");
    return retryLater();
  });
}

export function stopListening() {
  link.source?.close();
  link.source = null;
  clearTimeout(link.timer);
}

// What is under way would still change the figures of a page that stands still.
export function stopPulling() {
  if (page.hasAttribute("aria-busy")) link.request.abort();
}

function receive(state) {
  if (!isChosen(state) || isShown(state)) return;
  paint(state);
  tick();
  const { order_count: orders, sales_amount: sales } = state.metrics;
  say(`${count(orders.value)} orders, ${money(sales.value)} at ${clock(shown.publishedAt)}.`);
  // The event names the newest point only; late orders and the start of the window move others.
  // Not all pages at the same moment.
  setTimeout(() => loadTrend(state).catch(retryUnlessAborted), Math.random() * SPREAD_MS);
}

// A page that is paused stands still: nothing may bring it to a newer snapshot later on.
export function retryLater(seconds = 0) {
  clearTimeout(link.timer);
  if (link.isPaused || link.isSignedOut) return;
  const wait = Math.min(1000 * 2 ** link.attempts, LONGEST_WAIT_MS);
  link.attempts += 1;
  link.timer = setTimeout(refresh, Math.max(wait * (0.5 + Math.random() / 2), seconds * 1000));
}

// Shows a window of a restaurant. Answers false if it could not, and says why on the page.
export async function load(windowName, restaurant) {
  link.request.abort();
  const request = new AbortController();
  link.request = request;
  page.setAttribute("aria-busy", "true");
  try {
    // State and trend of one snapshot, from the address of the page itself.
    const path = `${addressOf("/r", restaurant)}?window=${windowName}`;
    const { state, trend, money: written, failed } = await get(path, request.signal);
    Object.assign(page.dataset, written);
    paint(state);
    toggle(byId("failed"), failed);
    tick();
    paintTrend(trend, state.late_corrections);
    clearProblem();
    return true;
  } catch (error) {
    if (request.signal.aborted) return false;
    if (error.status === 401) signOut();
    else if (error.status) showProblem(error);
    else if (link.isPaused) show("paused");
    // A slow server is not a lost connection, and a connection that was lost is not back.
    else if (error.name !== "TimeoutError") show("offline");
    else if (link.state !== "offline") show("retrying");
    retryLater(error.wait);
    return false;
  } finally {
    if (link.request === request) page.removeAttribute("aria-busy");
  }
}

// Pulls what the event of a snapshot leaves out.
async function loadTrend(state) {
  const isStill = () => isShown(state) && isChosen(state);
  if (!isStill() || link.isSignedOut) return;
  const path = `${addressOf("/v1/restaurants")}/trend?window=${shown.window}`;
  const trend = await get(path, link.request.signal);
  if (!isStill()) return;
  if (isShown(trend)) paintTrend(trend, state.late_corrections);
  // Another server, a snapshot ahead or behind: one pull brings both as of one.
  else retryLater();
}

function retryUnlessAborted(error) {
  if (error.name !== "AbortError") retryLater();
}

export async function refresh() {
  if (!(await load(shown.window, shown.restaurant))) return;
  if (link.state === "offline") show("retrying");
  listen();
}

function showProblem({ problem, status, message }) {
  write(byId("problem-title"), `${problem.title ?? message ?? "The server refused"}.`);
  const detail = problem.detail ?? "";
  write(byId("problem-detail"), detail && `${detail[0].toUpperCase()}${detail.slice(1)}.`);
  write(byId("problem-code"), problem.code ?? String(status));
  byId("problem").hidden = false;
  if (!link.isPaused) show("retrying");
  say(`${problem.title ?? "The server refused"}.`);
}

function clearProblem() {
  byId("problem").hidden = true;
}

function signOut() {
  link.isSignedOut = true;
  stopListening();
  document.title = "Signed out - livemart";
  byId("sign-in").href = `${addressOf("/r")}?window=${shown.window}`;
  removeChart();
  for (const part of [page, document.querySelector(".top"), byId("stale"), byId("problem")]) part.remove();
  byId("signed-out").hidden = false;
  say("You are signed out.");
}
