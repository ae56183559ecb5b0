// The chart of the trend: the whole points of the table as bars, the one that goes on with a dashed
// edge, and last week as a line.

import { byId, write } from "./dom.js";
import { shown } from "./shown.js";
import { clock, money, place } from "./words.js";

const FONT = "system-ui, sans-serif";
const plot = { chart: null, look: "", isRemoved: false, points: [] };
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
  // A low bar for the rest of an hour would be read as a bad hour.
  plot.points = shown.points.filter(({ part }) => part !== "part");
  if (!plot.points.length) return;
  const newest = plot.points.at(-1);
  const goesOn = ({ part }) => part !== null;
  const data = [
    [...plot.points.map(({ startedAt }) => startedAt / 1000), newest.startedAt / 1000 + shown.step * 60],
    // The line of last week goes on to where the last bar ends.
    [...plot.points, newest].map(({ lastWeek }) => number(lastWeek)),
    [...plot.points.map((point) => (goesOn(point) ? null : number(point.sales))), null],
    [...plot.points.map((point) => (goesOn(point) ? number(point.sales) : null)), null],
  ];
  const look = [shown.window, place.zone, place.currency, color("--accent")].join();
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
  const bars = uPlot.paths.bars({ align: 1, size: [0.84, 72] });
  const label = (seconds) =>
    hours > 48 ? `${place.day.format(seconds * 1000)} ${place.date.format(seconds * 1000).split(" ")[0]}` : clock(seconds * 1000);
  const axis = {
    stroke: color("--quiet"),
    font: `12px ${FONT}`,
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
    scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.15 : 10] } },
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
        values: (_, splits) => splits.map((amount) => place.short.format(amount)),
      },
    ],
    series: [
      {},
      { stroke: color("--before"), width: 1.5, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } },
      { stroke: color("--accent"), fill: color("--bar"), width: 1, paths: bars, points: { show: false } },
      { stroke: color("--accent"), fill: color("--wash"), width: 1.5, dash: [4, 3], paths: bars, points: { show: false } },
    ],
    hooks: { setCursor: [readOut], draw: [labelBars] },
  };
}

// Writes amounts above the bars where there is room for all of them, else above the highest one.
function labelBars(chart) {
  const { ctx } = chart;
  const scale = window.devicePixelRatio;
  const [at, , whole, running] = chart.data;
  const edges = at.map((seconds) => chart.valToPos(seconds, "x", true));
  const width = edges[1] - edges[0];
  const most = Math.max(...whole);
  const write = (text, index, amount) => {
    const half = ctx.measureText(text).width / 2;
    const center = Math.min(edges[index] + width * 0.42, edges.at(-1) - half);
    ctx.fillText(text, center, chart.valToPos(amount, "y", true) - 4 * scale);
  };
  ctx.save();
  ctx.font = `${11 * scale}px ${FONT}`;
  ctx.textAlign = "center";
  ctx.textBaseline = "bottom";
  ctx.fillStyle = color("--ink");
  const texts = whole.map((amount) => (amount > 0 ? place.short.format(amount) : ""));
  const isRoomy = texts.every((text) => ctx.measureText(text).width < width);
  const highest = whole.indexOf(most);
  texts.forEach((text, index) => {
    if (text && (isRoomy || index === highest)) write(text, index, whole[index]);
  });
  running.forEach((amount, index) => {
    if (amount !== null) write("so far", index, amount);
  });
  ctx.restore();
}

function readOut(chart) {
  const { left } = chart.cursor;
  // The bar under the hand is the one that begins before it, not the one whose beginning is nearest.
  const seconds = left >= 0 ? chart.posToVal(left, "x") : -Infinity;
  const point = plot.points.findLast(({ startedAt }) => startedAt / 1000 <= seconds);
  if (!point) return write(byId("readout"), "");
  const more = point.part === null ? "" : ` ${point.part}`;
  return write(byId("readout"), `${point.label}: ${money(point.sales)}${more}, last week ${money(point.lastWeek)}`);
}

export function fitChart() {
  sizes.observe(byId("plot"));
}

export function removeChart() {
  plot.isRemoved = true;
  sizes.disconnect();
  plot.chart?.destroy();
}
