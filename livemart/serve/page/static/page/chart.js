// The chart of the trend: the points of the table as lines.

import { byId, write } from "./dom.js";
import { shown } from "./shown.js";
import { clock, moment, money, place } from "./words.js";

const plot = { chart: null, look: "", isRemoved: false };
const sizes = new ResizeObserver(([{ contentRect: { width, height } }]) => {
  if (plot.chart && width) plot.chart.setSize({ width, height });
});

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function draw() {
  const { uPlot } = window;
  if (!uPlot || !shown.points.length || plot.isRemoved) return;
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

export function fitChart() {
  sizes.observe(byId("plot"));
}

export function removeChart() {
  plot.isRemoved = true;
  sizes.disconnect();
  plot.chart?.destroy();
}
