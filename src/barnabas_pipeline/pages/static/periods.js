/** Turns the periods of the address into those that the server reads. This module does not access the page. */

import { valueOf, without, withValues } from "./address.js";
import * as words from "./words.js";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** The periods that move on with the data, by their value of `period`. `days` is the distance of the period before. */
export const PRESETS = [
  { name: "today", current: "Today", past: "Last day", days: 1 },
  { name: "7d", current: "7 days", past: "7 days", days: 7 },
  { name: "30d", current: "30 days", past: "30 days", days: 30 },
  { name: "week", current: "This week", past: "Last week", days: 7 },
];

const midnight = (at) => Math.floor(at / DAY_MS) * DAY_MS;

/** Whether the newest data is from today. @param {any} site */
export function isCurrent(site, now = Date.now()) {
  return site.ends_at != null && midnight(now) <= midnight(site.ends_at);
}

/**
 * Returns the parameters for the server. A preset ends with the newest hit, and is compared with the same
 * hours of the period before, because a day that has only begun is not comparable with a whole one.
 * @param {import("./address.js").Pairs} pairs @param {any} site @returns {import("./address.js").Pairs}
 */
export function resolved(pairs, site) {
  const preset = PRESETS.find(({ name }) => name === valueOf(pairs, "period"));
  const rest = without(pairs, ["period"]);
  if (!preset || site?.ends_at == null) return withoutIdleComparison(rest);
  const end = Math.ceil((site.ends_at + 1) / MINUTE_MS) * MINUTE_MS;
  const last = midnight(site.ends_at);
  const sinceMonday = (new Date(last).getUTCDay() + 6) % 7;
  const days = preset.name === "week" ? sinceMonday : preset.days - 1;
  const begin = last - days * DAY_MS;
  const period = { since: iso(begin), until: iso(end) };
  if (valueOf(pairs, "compare") !== "before") return withValues(rest, period);
  const shift = preset.days * DAY_MS;
  return withValues(rest, { ...period, compare: iso(begin - shift), compare_until: iso(end - shift) });
}

function withoutIdleComparison(pairs) {
  const isOpen = !valueOf(pairs, "since") || !valueOf(pairs, "until");
  return valueOf(pairs, "compare") === "before" && isOpen ? without(pairs, ["compare"]) : pairs;
}

/** Returns a time as the server reads it. @param {number} at @returns {string} */
export function iso(at) {
  return new Date(at).toISOString().slice(0, 16);
}

/** Returns `since` and `until` of a period, as whole days if possible. @param {number} begin @param {number} end */
export function bounds(begin, end) {
  const isDays = begin % DAY_MS === 0 && end % DAY_MS === 0;
  const date = (at) => iso(at).slice(0, 10);
  return isDays ? { since: date(begin), until: date(end - DAY_MS) } : { since: iso(begin), until: iso(end) };
}

/** Returns a bound in ms, or null. A whole day is included in its period. @param {string} text */
export function moment(text, isEnd = false) {
  if (!text) return null;
  const isDay = text.length === 10;
  const at = Date.parse(isDay ? `${text}T00:00Z` : /[Z+]|-\d\d:\d\d$/.test(text.slice(10)) ? text : `${text}Z`);
  return Number.isNaN(at) ? null : at + (isDay && isEnd ? DAY_MS : 0);
}

/** Formats the period of resolved parameters, such as "6 Apr 2026 to 12 Apr 2026". @param {import("./address.js").Pairs} pairs */
export function periodText(pairs, first = "since", last = "until") {
  const begin = moment(valueOf(pairs, first));
  const end = moment(valueOf(pairs, last), true);
  if (begin != null && end != null) return words.span(begin, end);
  if (begin != null) return `since ${words.moment(begin).slice(0, -3)}`;
  if (end != null) return `until ${words.moment(end).slice(0, -3)}`;
  return "";
}

/** Formats the period with which figures are compared, or "". @param {import("./address.js").Pairs} pairs resolved */
export function otherText(pairs) {
  const compare = valueOf(pairs, "compare");
  if (compare !== "before") return compare ? periodText(pairs, "compare", "compare_until") : "";
  const begin = moment(valueOf(pairs, "since"));
  const end = moment(valueOf(pairs, "until"), true);
  return begin == null || end == null ? "" : words.span(begin - (end - begin), begin);
}
