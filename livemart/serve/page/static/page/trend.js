// The course of a window as a table and as a sentence, for all who do not see the chart.

import { draw } from "./chart.js";
import { byId, make, write } from "./dom.js";
import { dataAtOf, shown } from "./shown.js";
import { clock, count, exact, minutes, moment, money } from "./words.js";

export function readPoints() {
  return [...byId("points").rows].map((row) => {
    const [sales, lastWeek] = [...row.querySelectorAll("data")].map((data) => data.value || null);
    return {
      startedAt: Date.parse(row.querySelector("time").dateTime),
      label: row.querySelector("time").textContent,
      part: row.dataset.part ?? null,
      sales,
      lastWeek,
    };
  });
}

export function paintTrend(trend, late) {
  const hours = trend.window.hours;
  const lateAt = (late?.panes ?? []).map((pane) => Date.parse(pane));
  const dataAt = dataAtOf(trend);
  shown.step = trend.step_minutes;
  const rows = trend.points.map((point, index) => {
    const startedAt = Date.parse(point.start);
    const before = trend.last_week[index].sales_amount;
    const isLate = lateAt.some((pane) => pane >= startedAt && pane < startedAt + shown.step * 60_000);
    const time = make("time", { datetime: point.start }, hours > 1 ? moment(startedAt) : clock(startedAt));
    const part = partOf(startedAt, dataAt);
    const mark = [
      ...(part ? [" ", make("span", { class: "mark part" }, part)] : []),
      ...(isLate ? [" ", make("span", { class: "mark" }, "late orders")] : []),
    ];
    return make("tr", { ...(isLate && { class: "late" }), ...(part && { "data-part": part }) },
      make("th", { scope: "row" }, time, ...mark),
      make("td", {}, count(point.order_count)),
      make("td", {}, make("data", { value: point.sales_amount ?? "" }, money(point.sales_amount))),
      make("td", {}, make("data", { value: before ?? "" }, money(before))));
  });
  byId("points").replaceChildren(...rows);
  shown.points = readPoints();
  write(byId("caption"), caption(shown.points));
  draw();
}

// `so far` of a point that goes on, `part` of an hour that began before the window.
function partOf(startedAt, dataAt) {
  const passed = shown.step > 5 ? minutes(startedAt) : 0;
  if (startedAt + (shown.step - passed) * 60_000 > dataAt) return "so far";
  return passed ? "part" : null;
}

function caption(points) {
  const step = shown.step > 5 ? "hour" : "5 minutes";
  const sold = points.map((point) => ({ ...point, amount: exact(point.sales) })).filter(({ amount }) => amount > 0n);
  if (!sold.length) return "Nothing was sold in this window.";
  const whole = sold.filter(({ part }) => part === null);
  if (!whole.length) return `Sales per ${step}; nothing was sold in a whole one yet.`;
  const most = whole.reduce((best, point) => (point.amount > best.amount ? point : best));
  const before =
    most.lastWeek === null ? "last week is not known yet" : `${money(most.lastWeek)} in the same ${step} last week`;
  return `Sales per ${step}, the most at ${most.label} with ${money(most.sales)}; ${before}.`;
}
