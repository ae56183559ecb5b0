// The course of a window as a table and as a sentence, for all who do not see the chart.

import { draw } from "./chart.js";
import { byId, make, write } from "./dom.js";
import { shown } from "./shown.js";
import { clock, count, decimalOf, exact, moment, money } from "./words.js";

export function readPoints() {
  return [...byId("points").rows].map((row) => {
    const [sales, lastWeek] = [...row.querySelectorAll("data")].map((data) => data.value || null);
    return { startedAt: Date.parse(row.querySelector("time").dateTime), sales, lastWeek };
  });
}

export function paintTrend(trend, late) {
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
  return `${text}; ${money(decimalOf(total))} in the same time last week.`;
}
