// Keeps the owner's page fresh, and answers to the owner's hand. The server has painted everything
// already; these modules write the same text again.

import { draw, fitChart } from "./page/chart.js";
import { byId, say, write } from "./page/dom.js";
import { link, listen, load, refresh, retryLater, show, stopListening, stopPulling, tick } from "./page/link.js";
import { addressOf, shown } from "./page/shown.js";
import { readPoints } from "./page/trend.js";
import { windowWords } from "./page/words.js";

async function choose(windowName, isNew) {
  stopListening();
  if (!(await load(windowName))) return;
  if (isNew) history.pushState(null, "", `${addressOf("/r")}?window=${windowName}`);
  const name = windowWords(Number.parseInt(windowName, 10));
  say(`Last ${name}: ${byId("order_count").querySelector(".value").textContent} orders.`);
  listen();
}

byId("windows").addEventListener("submit", (event) => {
  event.preventDefault();
  choose(event.submitter.value, true);
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
  choose(new URLSearchParams(location.search).get("window") ?? "24h", false);
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
shown.points = readPoints();
draw();
setInterval(tick, 1000);
listen();
