// Keeps the owner's page fresh: by push while a stream is open, by pull where it is not.
// The server has painted everything already; this writes the same text as page_text.py and
// page_view.py. Text from events is only ever `textContent`.

const DASH = "\u2013";
const SPACE = "\u00a0";
const ARROWS = { up: "\u25b2", down: "\u25bc", same: "=", none: DASH };
const SCALE = 12;
const LONGEST_WAIT_MS = 60_000;
const PATIENCE_MS = 15_000;
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

const byId = (id) => document.getElementById(id);
const page = byId("figures");

// What is shown now. `clock` ties the server's time to this tab's own: a tablet's is often wrong.
const shown = {
  restaurant: page.dataset.restaurant,
  window: page.dataset.window,
  snapshot: Number(page.dataset.snapshot),
  interval: Number(page.dataset.interval),
  step: Number(page.dataset.step),
  publishedAt: Date.parse(page.dataset.publishedAt),
  clock: { server: Date.parse(page.dataset.serverTime), tab: performance.now() },
  points: [],
};

// ---------------------------------------------------------------- text: the twin of page_text.py

function makePlace(zone, currency, digits) {
  const time = (parts) => {
    try {
      return new Intl.DateTimeFormat("en-GB", { ...parts, hourCycle: "h23", timeZone: zone });
    } catch {
      return new Intl.DateTimeFormat("en-GB", { ...parts, hourCycle: "h23", timeZone: "UTC" });
    }
  };
  const fraction = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return {
    zone,
    clock: time({ hour: "2-digit", minute: "2-digit" }),
    day: time({ weekday: "short" }),
    date: time({ day: "numeric", month: "short" }),
    isoDay: time({ year: "numeric", month: "2-digit", day: "2-digit" }),
    money: new Intl.NumberFormat(
      "en-GB",
      currency ? { style: "currency", currency, currencyDisplay: "code", ...fraction } : fraction,
    ),
  };
}

let place = makePlace(page.dataset.zone, page.dataset.currency, Number(page.dataset.digits));
const wholes = new Intl.NumberFormat("en-GB");
const tenthsOf = new Intl.NumberFormat("en-GB", { minimumFractionDigits: 1 });

// `format` takes the decimal as a string: exact, as the server writes it.
const money = (amount) => (amount === null ? DASH : place.money.format(amount));
const count = (value) => (value === null ? DASH : wholes.format(value));
const clock = (instant) => place.clock.format(instant);
const moment = (instant, hasDate = false) =>
  [place.day.format(instant), ...(hasDate ? [place.date.format(instant)] : []), clock(instant)].join(" ");

function span(start, end) {
  const hasDate = end - start > 6 * 86_400_000;
  const sameDay = place.isoDay.format(start) === place.isoDay.format(end);
  return `${moment(start, hasDate)} to ${sameDay ? clock(end) : moment(end, hasDate)}`;
}

function windowWords(hours) {
  if (hours === 1) return "hour";
  return hours <= 48 || hours % 24 ? `${hours} hours` : `${hours / 24} days`;
}

// A decimal as a whole number of 10^-12: money never passes through a float.
function exact(value) {
  if (value === null) return null;
  const [, sign, whole, decimals = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(String(value));
  return BigInt(`${sign}${whole}${decimals.padEnd(SCALE, "0").slice(0, SCALE)}`);
}

const absolute = (number) => (number < 0n ? -number : number);
const divide = (part, whole) => (2n * part + whole) / (2n * whole);

function change(valueText, previousText, hours) {
  const before = hours > 1 && hours <= 48 ? `${hours} h` : windowWords(hours);
  const value = exact(valueText);
  const previous = exact(previousText);
  if (value === null || !previous) return ["none", "no comparison"];
  const tenths = divide(absolute(value - previous) * 1000n, absolute(previous));
  if (!tenths) return ["same", `unchanged from the ${before} before`];
  const [direction, sign] = value > previous ? ["up", "+"] : ["down", "\u2212"];
  const amount = tenthsOf.format(`${tenths / 10n}.${tenths % 10n}`);
  return [direction, `${direction} ${sign}${amount}${SPACE}% on the ${before} before`];
}

function percentOf(shareText) {
  const share = exact(shareText);
  if (share === null) return null;
  const percent = share < 0n ? 0n : divide(share * 100n, exact("1"));
  return Number(percent > 100n ? 100n : percent);
}

function ageWords(milliseconds) {
  const seconds = Math.max(Math.floor(milliseconds / 1000), 0);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(seconds / 3600);
  const days = Math.floor(seconds / 86_400);
  if (seconds < 60) return `${seconds} s ago`;
  if (minutes < 60) return `${minutes} min ago`;
  if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min ago` : `${hours} h ago`;
  return hours % 24 ? `${days} d ${hours % 24} h ago` : `${days} d ago`;
}

// -------------------------------------------------------------------------------- what is painted

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function toggle(element, text) {
  element.hidden = !text;
  write(element, text ?? "");
}

function say(sentence) {
  write(byId("status"), sentence);
}

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function paint(state) {
  const { restaurant, window: { hours, start, end, since, state: certainty }, metrics } = state;
  const code = /^[A-Z]{3}$/.test(restaurant.currency_code ?? "") ? restaurant.currency_code : "";
  const digits = code === page.dataset.currency ? Number(page.dataset.digits) : undefined;
  place = makePlace(restaurant.time_zone ?? "UTC", code, digits);
  shown.window = `${hours}h`;
  shown.snapshot = state.snapshot_id;
  shown.publishedAt = Date.parse(state.published_at);
  shown.clock = { server: Date.parse(state.server_time), tab: performance.now() };

  const name = restaurant.name || restaurant.id;
  document.title = `${name}, last ${windowWords(hours)} - livemart`;
  write(byId("name"), name);
  const dataAt = new Date(Math.min(state.as_of ? Date.parse(state.as_of) : Infinity, shown.publishedAt));
  byId("data-at").dateTime = dataAt.toISOString();
  write(byId("data-at"), clock(dataAt));
  for (const button of byId("windows").elements) {
    button.setAttribute("aria-pressed", String(button.value === shown.window));
  }
  write(byId("span"), span(Date.parse(start), Date.parse(end)));
  write(byId("state"), certainty);
  byId("since").hidden = !since;
  write(byId("since-at"), since ? moment(Date.parse(since)) : "");
  toggle(byId("note"), metrics.order_count.value === 0 ? `No orders in the last ${windowWords(hours)}.` : null);
  for (const tile of document.querySelectorAll(".tile")) paintTile(tile, metrics[tile.id], hours);
  paintDishes(state.top_dishes);
  toggle(byId("late"), lateSentence(state.late_corrections, hours));
  write(byId("zone"), place.zone);
  tick();
}

function paintTile(tile, { value, previous }, hours) {
  const text = ["sales_amount", "average_order_value"].includes(tile.id) ? money(value) : count(value);
  const figure = tile.querySelector(".value");
  if (figure.textContent !== text) {
    figure.textContent = text;
    figure.classList.add("changed");
    setTimeout(() => figure.classList.remove("changed"), 1500);
  }
  const [direction, words] = change(value, previous, hours);
  tile.querySelector(".change").dataset.direction = direction;
  write(tile.querySelector(".arrow"), ARROWS[direction]);
  write(tile.querySelector(".words"), words);
}

function paintDishes(dishes) {
  const lines = dishes.map((dish) => {
    const percent = percentOf(dish.share);
    const meter = { min: "0", max: "100", value: String(percent), "aria-label": "Share of sales" };
    return make("li", {},
      make("span", { class: "rank", "aria-hidden": "true" }, String(dish.rank)),
      make("span", { class: "dish" }, dish.name || dish.dish_id),
      make("span", { class: "sold" }, `${count(dish.quantity_sold)} sold`),
      make("span", { class: "sales" }, money(dish.sales_amount)),
      make("span", { class: "share" },
        ...(percent === null ? [] : [make("meter", meter)]),
        make("span", { class: "percent" }, percent === null ? DASH : `${percent}${SPACE}%`)));
  });
  byId("dishes").replaceChildren(...lines);
  byId("no-dishes").hidden = dishes.length > 0;
}

function lateSentence(late, hours) {
  if (!late?.panes.length) return null;
  const panes = late.panes.map((pane) => Date.parse(pane)).sort((one, other) => one - other);
  const first = panes[0];
  const end = panes.at(-1) + 300_000;
  const isLong = end - first > 86_400_000 || hours > 24;
  const noun = late.order_count === 1 ? "order" : "orders";
  return `${count(late.order_count)} late ${noun} changed ${isLong ? span(first, end) : `${clock(first)} to ${clock(end)}`}.`;
}

// ------------------------------------------------------------------------------ trend: table, chart

const plot = { chart: null, look: "" };

function readPoints() {
  return [...byId("points").rows].map((row) => {
    const [sales, lastWeek] = [...row.querySelectorAll("data")].map((data) => data.value || null);
    return { startedAt: Date.parse(row.querySelector("time").dateTime), sales, lastWeek };
  });
}

function paintTrend(trend, late) {
  const hours = trend.window.hours;
  const lateAt = (late?.panes ?? []).map((pane) => Date.parse(pane));
  shown.step = trend.step_minutes;
  const rows = trend.points.map((point, index) => {
    const startedAt = Date.parse(point.start);
    const before = trend.last_week[index].sales_amount;
    const isLate = lateAt.some((pane) => pane >= startedAt && pane < startedAt + shown.step * 60_000);
    const time = make("time", { datetime: point.start }, hours > 1 ? moment(startedAt) : clock(startedAt));
    const mark = isLate ? [" ", make("span", { class: "mark" }, "late orders")] : [];
    return make("tr", isLate ? { class: "late" } : {},
      make("th", { scope: "row" }, time, ...mark),
      make("td", {}, count(point.order_count)),
      make("td", {}, make("data", { value: point.sales_amount ?? "" }, money(point.sales_amount))),
      make("td", {}, make("data", { value: before ?? "" }, money(before))));
  });
  byId("points").replaceChildren(...rows);
  write(byId("caption"), caption(trend));
  shown.points = readPoints();
  draw();
}

function caption(trend) {
  const isHourly = trend.step_minutes !== 5;
  const sold = trend.points
    .map((point) => ({ amount: exact(point.sales_amount), text: point.sales_amount, at: Date.parse(point.start) }))
    .filter(({ amount }) => amount !== null && amount > 0n);
  let text = "Nothing was sold in this window";
  if (sold.length) {
    const most = sold.reduce((best, point) => (point.amount > best.amount ? point : best));
    text = `Sales per ${isHourly ? "hour" : "5 minutes"}, the most at ${isHourly ? moment(most.at) : clock(most.at)} with ${money(most.text)}`;
  }
  const before = trend.last_week.map((point) => exact(point.sales_amount)).filter((amount) => amount !== null);
  if (!before.length) return `${text}; last week is not known yet.`;
  const total = before.reduce((sum, amount) => sum + amount, 0n);
  const digits = String(absolute(total)).padStart(SCALE + 1, "0");
  const decimal = `${total < 0n ? "-" : ""}${digits.slice(0, -SCALE)}.${digits.slice(-SCALE)}`;
  return `${text}; ${money(decimal)} in the same time last week.`;
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function draw() {
  const { uPlot } = window;
  if (!uPlot || !shown.points.length || link.isSignedOut) return;
  const box = byId("plot");
  box.hidden = byId("key").hidden = false;
  // Floats are good enough for pixels, and for nothing else.
  const number = (text) => (text === null ? null : Number(text));
  const data = [
    shown.points.map(({ startedAt }) => startedAt / 1000),
    shown.points.map(({ lastWeek }) => number(lastWeek)),
    shown.points.map(({ sales }) => number(sales)),
  ];
  const look = [shown.window, place.zone, color("--accent")].join();
  if (plot.chart && plot.look === look) {
    plot.chart.setData(data);
    return;
  }
  plot.chart?.destroy();
  plot.look = look;
  plot.chart = new uPlot(chartOptions(box, uPlot), data, box);
}

function chartOptions(box, uPlot) {
  const hours = Number.parseInt(shown.window, 10);
  const compact = new Intl.NumberFormat("en-GB", { notation: "compact", maximumFractionDigits: 1 });
  const label = (seconds) =>
    hours > 48 ? `${place.day.format(seconds * 1000)} ${place.date.format(seconds * 1000).split(" ")[0]}` : clock(seconds * 1000);
  const axis = {
    stroke: color("--quiet"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: color("--hair"), width: 1 },
    ticks: { stroke: color("--hair"), width: 1, size: 4 },
  };
  return {
    width: box.clientWidth,
    height: box.clientHeight,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), place.zone),
    padding: [8, 24, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 8 } },
    scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 10] } },
    axes: [
      {
        ...axis,
        size: 32,
        space: hours > 48 ? 64 : 56,
        incrs: hours > 48 ? [86_400, 172_800, 345_600] : hours > 1 ? [3600, 7200, 10_800, 21_600, 43_200] : [300, 600, 900, 1800],
        values: (_, splits) => splits.map(label),
      },
      {
        ...axis,
        size: (_, values) => 14 + 7.5 * Math.max(1, ...(values ?? []).map((text) => text.length)),
        values: (_, splits) => splits.map((amount) => compact.format(amount)),
      },
    ],
    series: [
      {},
      { stroke: color("--before"), width: 1.25, dash: [5, 4], points: { show: false } },
      { stroke: color("--accent"), fill: color("--wash"), width: 2, points: { show: false } },
    ],
    hooks: { setCursor: [readOut] },
  };
}

function readOut(chart) {
  const point = shown.points[chart.cursor.idx ?? -1];
  if (!point) return write(byId("readout"), "");
  const at = shown.step > 5 ? moment(point.startedAt) : clock(point.startedAt);
  return write(byId("readout"), `${at}: ${money(point.sales)}, last week ${money(point.lastWeek)}`);
}

// ------------------------------------------------------------------------------- age and connection

const link = {
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

const serverNow = () => shown.clock.server + (performance.now() - shown.clock.tab);

function tick() {
  if (link.isSignedOut) return;
  const age = serverNow() - shown.publishedAt;
  const isOld = age > 2 * shown.interval * 1000;
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

function show(state) {
  if (state === link.state) return;
  const before = link.state;
  link.state = state;
  byId("connection").dataset.state = state;
  const words = state === "paused" ? `Paused at ${clock(serverNow())}` : WORDS[state];
  write(byId("connection-word"), words);
  if (state === "paused" || state === "offline") say(`${words}.`);
  if (state === "live" && before === "offline") say("Live again.");
}

function listen() {
  stopListening();
  if (link.isPaused || link.isSignedOut || document.hidden) return;
  if (!["offline", "retrying"].includes(link.state)) show("connecting");
  const path = `/v1/restaurants/${encodeURIComponent(shown.restaurant)}/stream`;
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
  source.addEventListener("error", () => {
    // The browser comes back by itself after a lost connection, never after a refusal.
    if (source.readyState !== EventSource.CLOSED) return show("offline");
    if (link.state !== "offline") show("retrying");
    return retryLater();
  });
}

function stopListening() {
  link.source?.close();
  link.source = null;
  clearTimeout(link.timer);
}

function receive(state) {
  if (`${state.window.hours}h` !== shown.window || state.snapshot_id === shown.snapshot) return;
  paint(state);
  const { order_count: orders, sales_amount: sales } = state.metrics;
  say(`${count(orders.value)} orders, ${money(sales.value)} at ${clock(shown.publishedAt)}.`);
  // The event names the newest point only; late orders and the start of the window move others.
  // Not all pages at the same moment.
  setTimeout(() => loadTrend(state).catch(retryUnlessAborted), Math.random() * SPREAD_MS);
}

function retryLater(seconds = 0) {
  clearTimeout(link.timer);
  const wait = Math.min(1000 * 2 ** link.attempts, LONGEST_WAIT_MS);
  link.attempts += 1;
  link.timer = setTimeout(refresh, Math.max(wait * (0.5 + Math.random() / 2), seconds * 1000));
}

// Pulls a window whole: state and trend of one snapshot, from the address of the page itself.
async function pull(windowName, signal) {
  const path = `/r/${encodeURIComponent(shown.restaurant)}?window=${windowName}`;
  return get(path, signal);
}

async function get(path, signal) {
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), PATIENCE_MS);
  signal.addEventListener("abort", () => patience.abort(), { once: true });
  const headers = { Accept: "application/json" };
  const answer = await fetch(path, { headers, signal: patience.signal }).finally(() => clearTimeout(timer));
  if (answer.ok) return answer.json();
  const problem = await answer.json().catch(() => ({}));
  throw Object.assign(new Error(problem.title ?? answer.statusText), {
    status: answer.status,
    problem,
    wait: Number(answer.headers.get("Retry-After")) || 0,
  });
}

// Shows a window. Answers false if it could not, and says why on the page.
async function load(windowName) {
  link.request.abort();
  const request = new AbortController();
  link.request = request;
  page.setAttribute("aria-busy", "true");
  try {
    const { state, trend } = await pull(windowName, request.signal);
    paint(state);
    paintTrend(trend, state.late_corrections);
    clearProblem();
    return true;
  } catch (error) {
    if (request.signal.aborted) return false;
    if (error.status === 401) signOut();
    else if (error.status) showProblem(error);
    else show(link.isPaused ? "paused" : "offline");
    if (!link.isSignedOut && !link.isPaused) retryLater(error.wait);
    return false;
  } finally {
    if (link.request === request) page.removeAttribute("aria-busy");
  }
}

// Pulls what the event of a snapshot leaves out.
async function loadTrend(state) {
  const isStill = () => shown.snapshot === state.snapshot_id && shown.window === `${state.window.hours}h`;
  if (!isStill() || link.isSignedOut) return;
  const path = `/v1/restaurants/${encodeURIComponent(shown.restaurant)}/trend?window=${shown.window}`;
  const trend = await get(path, link.request.signal);
  if (!isStill()) return;
  if (trend.snapshot_id === shown.snapshot) paintTrend(trend, state.late_corrections);
  // Another server, a snapshot ahead or behind: one pull brings both as of one.
  else retryLater();
}

function retryUnlessAborted(error) {
  if (error.name !== "AbortError" && !link.isPaused && !link.isSignedOut) retryLater();
}

async function refresh() {
  if (!(await load(shown.window))) return;
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
  byId("sign-in").href = `/r/${encodeURIComponent(shown.restaurant)}?window=${shown.window}`;
  sizes.disconnect();
  plot.chart?.destroy();
  for (const part of [page, document.querySelector(".top"), byId("stale"), byId("problem")]) part.remove();
  byId("signed-out").hidden = false;
  say("You are signed out.");
}

// ---------------------------------------------------------------------------------- the owner's hand

async function choose(windowName, isNew) {
  stopListening();
  if (!(await load(windowName))) return;
  if (isNew) history.pushState(null, "", `/r/${encodeURIComponent(shown.restaurant)}?window=${windowName}`);
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
});
addEventListener("online", () => {
  if (!link.isPaused && !link.isSignedOut) refresh();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) stopListening();
  else if (!link.isPaused && !link.isSignedOut) refresh();
});
addEventListener("pageshow", (event) => {
  // Out of the back-forward cache: the figures are of then.
  if (event.persisted && !link.isPaused) refresh();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
const sizes = new ResizeObserver(([{ contentRect: { width, height } }]) => {
  if (plot.chart && width) plot.chart.setSize({ width, height });
});
sizes.observe(byId("plot"));

byId("pause").hidden = false;
shown.points = readPoints();
draw();
setInterval(tick, 1000);
listen();
