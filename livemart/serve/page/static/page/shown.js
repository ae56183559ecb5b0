// What is shown at the moment: of which restaurant and window, and from which snapshot.

import { byId } from "./dom.js";

export const page = byId("figures");

// `clock` ties the server's time to this tab's own: a tablet's is often wrong.
export const shown = {
  restaurant: page.dataset.restaurant,
  window: page.dataset.window,
  snapshot: Number(page.dataset.snapshot),
  epoch: page.dataset.epoch || null,
  interval: Number(page.dataset.interval),
  lateAfter: Number(page.dataset.lateAfter),
  step: Number(page.dataset.step),
  publishedAt: Date.parse(page.dataset.publishedAt),
  checkedAt: Date.parse(page.dataset.checkedAt),
  refreshedAt: page.dataset.refreshedAt || null,
  clock: { server: Date.parse(page.dataset.serverTime), tab: performance.now() },
  points: [],
};

// The time at the server, whatever the clock of this device says.
export const serverNow = () => shown.clock.server + (performance.now() - shown.clock.tab);

// Takes over when the snapshot was last known to be the newest, and the server's clock. Figures of a
// model that is set aside are as old as its rows, whatever snapshot shows them.
export function takeTimes({ published_at: publishedAt, checked_at: checkedAt, server_time: serverTime }) {
  const newest = Math.max(Date.parse(publishedAt), checkedAt ? Date.parse(checkedAt) : 0);
  shown.checkedAt = shown.refreshedAt ? Math.min(newest, Date.parse(shown.refreshedAt)) : newest;
  shown.clock = { server: Date.parse(serverTime), tab: performance.now() };
}

// The clock runs to the end of the pane: data cannot be newer than its publication.
export const dataAtOf = ({ as_of: asOf, published_at: publishedAt }) =>
  Math.min(asOf ? Date.parse(asOf) : Infinity, Date.parse(publishedAt));

// True if a body is of the snapshot that is shown: in a store that was filled anew ids begin again, and
// one that was mended publishes the same once more.
export function isShown({ snapshot_id: id, epoch = null, published_at: publishedAt }) {
  const isOfEpoch = epoch === null || shown.epoch === null || epoch === shown.epoch;
  return id === shown.snapshot && isOfEpoch && Date.parse(publishedAt) === shown.publishedAt;
}

// True if a body is of the restaurant and the window that are shown.
export const isChosen = ({ restaurant, window: { hours } }) =>
  restaurant.id === shown.restaurant && `${hours}h` === shown.window;

// Paths end with an id that may hold anything.
export const addressOf = (base, restaurant = shown.restaurant) => `${base}/${encodeURIComponent(restaurant)}`;
