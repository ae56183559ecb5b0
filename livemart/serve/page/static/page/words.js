// Figures and times as text: the same text as page_text.py writes.

import { page } from "./shown.js";

export const DASH = "\u2013";
export const SPACE = "\u00a0";
const SCALE = 12;

// A zone that nobody knows is UTC, as on the server: which does not take `+02:00` for a name.
function knownZone(name) {
  try {
    if (/^[A-Za-z]/.test(name ?? "")) return new Intl.DateTimeFormat("en-GB", { timeZone: name }) && name;
  } catch {
    // Below.
  }
  return "UTC";
}

function makePlace(name, currency, digits) {
  const zone = knownZone(name);
  const time = (parts) => new Intl.DateTimeFormat("en-GB", { ...parts, hourCycle: "h23", timeZone: zone });
  const inCurrency = currency ? { style: "currency", currency } : {};
  const fraction = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return {
    zone,
    clock: time({ hour: "2-digit", minute: "2-digit" }),
    day: time({ weekday: "short" }),
    date: time({ day: "numeric", month: "short" }),
    isoDay: time({ year: "numeric", month: "2-digit", day: "2-digit" }),
    currency,
    money: new Intl.NumberFormat("en-GB", { ...inCurrency, ...fraction }),
    // Only for the chart, where there is little room: of 1,234.50 it makes 1.2K.
    short: new Intl.NumberFormat("en-GB", {
      ...inCurrency, notation: "compact", minimumFractionDigits: 0, maximumSignificantDigits: 3,
    }),
  };
}

export let place = makePlace(page.dataset.zone, page.dataset.currency, Number(page.dataset.digits));

export function moveTo({ time_zone: zone, currency_code: currency }) {
  const code = /^[A-Z]{3}$/.test(currency ?? "") ? currency : "";
  const digits = code === page.dataset.currency ? Number(page.dataset.digits) : undefined;
  place = makePlace(zone, code, digits);
}

const wholes = new Intl.NumberFormat("en-GB");
const tenthsOf = new Intl.NumberFormat("en-GB", { minimumFractionDigits: 1 });

// `format` takes the decimal as a string: exact, as the server writes it.
export const money = (amount) => (amount === null ? DASH : place.money.format(amount));
export const count = (value) => (value === null ? DASH : wholes.format(value));
export const clock = (instant) => place.clock.format(instant);
export const minutes = (instant) => Number(clock(instant).split(":")[1]);
export const moment = (instant, hasDate = false) =>
  [place.day.format(instant), ...(hasDate ? [place.date.format(instant)] : []), clock(instant)].join(" ");

const SIX_DAYS_MS = 6 * 86_400_000;

export const isSameDay = (one, other) => place.isoDay.format(one) === place.isoDay.format(other);

export function span(start, end, isLongAgo = false) {
  const hasDate = isLongAgo || end - start > SIX_DAYS_MS;
  return `${moment(start, hasDate)} to ${isSameDay(start, end) ? clock(end) : moment(end, hasDate)}`;
}

// A day is named unless all of it is of the day in which the window ends.
export function spanWithin(start, end, windowEnd) {
  if (isSameDay(start, windowEnd - 1)) return `${clock(start)} to ${clock(end)}`;
  return span(start, end, windowEnd - start > SIX_DAYS_MS);
}

export function windowWords(hours) {
  if (hours === 1) return "hour";
  return hours <= 48 || hours % 24 ? `${hours} hours` : `${hours / 24} days`;
}

// A decimal as a whole number of 10^-12: money never passes through a float.
export function exact(value) {
  if (value === null) return null;
  const [, sign, whole, decimals = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(String(value));
  return BigInt(`${sign}${whole}${decimals.padEnd(SCALE, "0").slice(0, SCALE)}`);
}

const absolute = (number) => (number < 0n ? -number : number);
const divide = (part, whole) => (2n * part + whole) / (2n * whole);

export function change(valueText, lastWeekText) {
  const value = exact(valueText);
  const lastWeek = exact(lastWeekText);
  if (value === null || !lastWeek) return ["none", "no comparison"];
  const tenths = divide(absolute(value - lastWeek) * 1000n, absolute(lastWeek));
  if (!tenths) return ["same", "unchanged from last week"];
  const direction = value > lastWeek ? "up" : "down";
  const amount = tenthsOf.format(`${tenths / 10n}.${tenths % 10n}`);
  return [direction, `${direction} ${amount}${SPACE}% on last week`];
}

// From the amounts themselves: of a share that is rounded already 38.496 % would be 39 %.
export function percentOf(partText, wholeText) {
  const part = exact(partText);
  const whole = exact(wholeText);
  if (part === null || !whole) return null;
  const isNegative = part !== 0n && part < 0n !== whole < 0n;
  const percent = isNegative ? 0n : divide(absolute(part) * 100n, absolute(whole));
  return Number(percent > 100n ? 100n : percent);
}

// The average order before it is rounded, where it can be known: of yen the hundredths go, too.
export function averageOf(metrics) {
  const orders = exact(metrics.order_count.value);
  const sales = exact(metrics.sales_amount.value);
  if (sales === null || !orders) return metrics.average_order_value.value;
  // Cut off, not rounded: what is behind the twelfth decimal moves no half.
  return decimalOf((sales * 10n ** BigInt(SCALE)) / orders);
}

export function ageWords(milliseconds) {
  const seconds = Math.max(Math.floor(milliseconds / 1000), 0);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(seconds / 3600);
  const days = Math.floor(seconds / 86_400);
  if (seconds < 60) return `${seconds} s ago`;
  if (minutes < 60) return `${minutes} min ago`;
  if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min ago` : `${hours} h ago`;
  return hours % 24 ? `${days} d ${hours % 24} h ago` : `${days} d ago`;
}

// The inverse of `exact`.
function decimalOf(number) {
  const digits = String(absolute(number)).padStart(SCALE + 1, "0");
  return `${number < 0n ? "-" : ""}${digits.slice(0, -SCALE)}.${digits.slice(-SCALE)}`;
}
