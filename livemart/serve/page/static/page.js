// Keeps the owner's page fresh, and answers to the owner's hand. The server has painted everything
// already; these modules write the same text again.

import { draw, fitChart } from "./page/chart.js";
import { byId, say, write } from "./page/dom.js";
import { link, listen, load, refresh, retryLater, show, stopListening, stopPulling, tick } from "./page/link.js";
import { addressOf, page, shown } from "./page/shown.js";
import { readPoints } from "./page/trend.js";
import { windowWords } from "./page/words.js";

// One choice after another within this time is passing by: arrow keys choose at every step.
const PASSING_MS = 1000;

// Without a list of restaurants, or with one that is too long, there is nothing to switch at once.
const picker = document.querySelector("select#restaurant");
const passing = { at: -Infinity, hasEntry: false };

// Answers true if the figures are those that were chosen. The focus stays where it is.
async function choose(windowName, restaurant) {
  stopListening();
  const isOther = restaurant !== shown.restaurant;
  if (!(await load(windowName, restaurant))) {
    // The picker names whose figures these are, unless another choice is under way.
    if (picker && !page.hasAttribute("aria-busy")) picker.value = shown.restaurant;
    return false;
  }
  const words = windowWords(Number.parseInt(windowName, 10));
  const orders = byId("order_count").querySelector(".value").textContent;
  say(`${isOther ? `${byId("name").textContent}, last` : "Last"} ${words}: ${orders} orders.`);
  listen();
  return true;
}

const addressShown = () => `${addressOf("/r")}?window=${shown.window}`;

byId("windows").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (await choose(event.submitter.value, shown.restaurant)) history.pushState(null, "", addressShown());
});

picker?.addEventListener("change", async (event) => {
  passing.hasEntry &&= event.timeStamp - passing.at < PASSING_MS;
  passing.at = event.timeStamp;
  if (!(await choose(shown.window, picker.value))) return;
  // The way back leads past all that was passed by.
  if (passing.hasEntry) history.replaceState(null, "", addressShown());
  else history.pushState(null, "", addressShown());
  passing.hasEntry = true;
});

byId("pause").addEventListener("click", () => {
  link.isPaused = !link.isPaused;
  write(byId("pause"), link.isPaused ? "Resume" : "Pause");
  if (link.isPaused) {
    stopListening();
    stopPulling();
    show("paused");
  } else {
    show("connecting");
    refresh();
  }
});

byId("retry").addEventListener("click", () => {
  clearTimeout(link.timer);
  link.attempts = 0;
  refresh();
});

addEventListener("popstate", () => {
  passing.hasEntry = false;
  const restaurant = decodeURIComponent(location.pathname.split("/")[2]);
  choose(new URLSearchParams(location.search).get("window") ?? "24h", restaurant);
});
addEventListener("offline", () => {
  if (link.isPaused || link.isSignedOut) return;
  stopListening();
  show("offline");
  // Browsers err: behind some routers and docks they say so while the server answers.
  if (!document.hidden) retryLater();
});
addEventListener("online", () => {
  if (!link.isPaused && !link.isSignedOut) refresh();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) stopListening();
  else if (!link.isPaused && !link.isSignedOut) refresh();
});
addEventListener("pagehide", (event) => {
  // Should it come back out of the back-forward cache, no figure is seen before it is loaded again.
  document.documentElement.hidden = event.persisted;
});
addEventListener("pageshow", (event) => {
  // The figures are of then, and whoever goes back may have signed out since: the server decides.
  if (event.persisted) location.reload();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
fitChart();

byId("pause").hidden = false;
if (picker) {
  byId("open").hidden = true;
  // A browser that loads a page again may keep what was chosen before.
  picker.value = shown.restaurant;
}
shown.points = readPoints();
draw();
setInterval(tick, 1000);
listen();
