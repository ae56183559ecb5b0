// The figures of a window: heading, tiles, dishes and the sentence about late orders, as page_view.py
// paints them. Text from events is only ever `textContent`.

import { byId, make, toggle, write } from "./dom.js";
import { addressOf, dataAtOf, shown, takeTimes } from "./shown.js";
import {
  DASH, SPACE, averageOf, change, clock, count, moment, money, moveTo, percentOf, place, span, spanWithin, windowWords,
} from "./words.js";

const ARROWS = { up: "\u25b2", down: "\u25bc", same: "=", none: DASH };

export function paint(state) {
  const { restaurant, window: { hours, start, end, compared_until: comparedUntil, since, state: certainty }, metrics } = state;
  moveTo(restaurant);
  shown.restaurant = restaurant.id;
  shown.window = `${hours}h`;
  shown.snapshot = state.snapshot_id;
  shown.epoch = state.epoch ?? null;
  shown.publishedAt = Date.parse(state.published_at);
  shown.refreshedAt = state.refreshed_at || null;
  takeTimes(state);

  const name = restaurant.name || restaurant.id;
  document.title = `${name}, last ${windowWords(hours)} - livemart`;
  write(byId("name"), name);
  const dataAt = dataAtOf(state);
  byId("data-at").dateTime = new Date(dataAt).toISOString();
  write(byId("data-at"), clock(dataAt));
  pickShown();
  for (const button of byId("windows").elements) {
    button.setAttribute("aria-pressed", String(button.value === shown.window));
  }
  write(byId("span"), span(Date.parse(start), Math.max(Date.parse(start), dataAt)));
  const comparison = span(Date.parse(start), Date.parse(comparedUntil));
  write(byId("base"), `Changes: ${comparison} beside the same time one week before.`);
  write(byId("state"), certainty);
  byId("since").hidden = !since;
  write(byId("since-at"), since ? moment(Date.parse(since)) : "");
  toggle(byId("note"), metrics.order_count.value === 0 ? `No orders in the last ${windowWords(hours)}.` : null);
  for (const tile of document.querySelectorAll(".tile")) paintTile(tile, metrics);
  paintDishes(state.top_dishes, metrics.sales_amount.value);
  toggle(byId("late"), lateSentence(state.late_corrections, Date.parse(end)));
  write(byId("zone"), place.zone);
}

// The forms say what is shown: the picker never names another restaurant than the figures' own.
function pickShown() {
  byId("windows").setAttribute("action", addressOf("/r"));
  const picker = document.querySelector(".picker");
  if (!picker) return;
  picker.elements.window.value = shown.window;
  // Of an id that is typed, a new snapshot takes nothing away.
  if (picker.elements.restaurant.localName === "select") picker.elements.restaurant.value = shown.restaurant;
}

function paintTile(tile, metrics) {
  const { value, compared, last_week: lastWeek } = metrics[tile.id];
  const amount = tile.id === "average_order_value" ? averageOf(metrics) : value;
  const text = ["sales_amount", "average_order_value"].includes(tile.id) ? money(amount) : count(value);
  const figure = tile.querySelector(".value");
  if (figure.textContent !== text) {
    figure.textContent = text;
    figure.classList.add("changed");
    setTimeout(() => figure.classList.remove("changed"), 1500);
  }
  const [direction, words] = change(compared, lastWeek);
  tile.querySelector(".change").dataset.direction = direction;
  write(tile.querySelector(".arrow"), ARROWS[direction]);
  write(tile.querySelector(".words"), words);
}

function paintDishes(dishes, allSales) {
  const lines = dishes.map((dish) => {
    const percent = percentOf(dish.sales_amount, allSales);
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

export function lateSentence(late, windowEnd) {
  if (!late?.panes.length) return null;
  const panes = late.panes.map((pane) => Date.parse(pane)).sort((one, other) => one - other);
  const noun = late.order_count === 1 ? "order" : "orders";
  const when = spanWithin(panes[0], panes.at(-1) + 300_000, windowEnd);
  return `${count(late.order_count)} late ${noun} changed ${when}.`;
}
