/** Formats cells, changes and times for people. All times are in UTC. This module does not access the page. */

import * as format from "../console/format.js";

const { MONTHS, two } = format;
export const DASH = format.DASH;
/** The value of a dimension that stands for rows without a value. */
export const MISSING = "~";

const WEEKDAYS = "Sun Mon Tue Wed Thu Fri Sat".split(" ");
const DAY_MS = 86_400_000;
const MONEY = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const COUNT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

/** @param {string | number | null} cell @param {string} unit a `Unit` of the server @returns {string} */
export function cellText(cell, unit) {
  if (cell == null) return DASH;
  if (typeof cell === "string") return cell;
  if (unit === "share") return percent(cell);
  if (unit === "bytes") return format.bytes(cell);
  if (unit === "seconds") return format.duration(cell);
  if (unit === "microseconds") return cell < 1000 ? `${COUNT.format(cell)} µs` : format.duration(cell / 1e6);
  if (unit === "value") return MONEY.format(cell);
  if (unit === "time") return moment(cell);
  return COUNT.format(cell);
}

/** @param {number} share @returns {string} such as "4.5%" or "12%" */
export function percent(share) {
  const digits = share !== 0 && Math.abs(share) < 0.0995 ? 1 : 0;
  return `${(100 * share).toFixed(digits)}%`;
}

/**
 * Formats how a figure has changed, such as "▲ 5%".
 * @param {any} value @param {any} before @param {string} unit @returns {string} "" if there is nothing to compare
 */
export function change(value, before, unit) {
  if (typeof value !== "number" || typeof before !== "number") return "";
  if (unit === "share") {
    const points = 100 * (value - before);
    return Math.abs(points) < 0.05 ? "± 0 points" : `${arrow(points)} ${Math.abs(points).toFixed(1)} points`;
  }
  if (before === 0) return value === 0 ? "± 0%" : "new";
  const ratio = value / before - 1;
  return Math.abs(ratio) < 0.005 ? "± 0%" : `${arrow(ratio)} ${Math.round(100 * Math.abs(ratio))}%`;
}

const arrow = (difference) => (difference > 0 ? "▲" : "▼");

/** @param {number} at ms since 1970 @returns {string} such as "12 Apr 2026, 23:45:10" */
export function moment(at) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return String(at);
  return `${day(at)}, ${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`;
}

/** @param {number} at @returns {string} such as "12 Apr 2026" */
export function day(at) {
  const date = new Date(at);
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
}

/** @param {number} at @returns {string} such as "23:45" */
export function minute(at) {
  const date = new Date(at);
  return `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`;
}

/** Formats a period. The end is excluded. @param {number} begin @param {number} end @returns {string} */
export function span(begin, end) {
  if (begin % DAY_MS === 0 && end % DAY_MS === 0) {
    const last = end - DAY_MS;
    if (begin === last) return weekday(begin);
    const isOneYear = new Date(begin).getUTCFullYear() === new Date(last).getUTCFullYear();
    return `${isOneYear ? day(begin).slice(0, -5) : day(begin)} to ${day(last)}`;
  }
  const isOneDay = Math.floor(begin / DAY_MS) === Math.floor((end - 1) / DAY_MS);
  const close = end % DAY_MS === 0 && isOneDay ? "24:00" : minute(end);
  if (isOneDay) return `${weekday(begin)}, ${minute(begin)} to ${close}`;
  const from = begin % DAY_MS === 0 ? day(begin) : moment(begin).slice(0, -3);
  return `${from} to ${moment(end).slice(0, -3)}`;
}

/** @param {number} at @returns {string} such as "Sun 12 Apr 2026" */
export function weekday(at) {
  return `${WEEKDAYS[new Date(at).getUTCDay()]} ${day(at)}`;
}

const TICKS_MS = [
  ...[1, 5, 10, 30, 60, 180, 360, 720].map((minutes) => 60_000 * minutes),
  ...[1, 2, 4, 7, 14, 28, 91, 365].map((days) => DAY_MS * days),
];
const A_MONDAY = Date.UTC(2001, 0, 1);

/** Returns the distance of at most `most` round times. @param {number} span_ms @param {number} most */
export function tickStep(span_ms, most) {
  return TICKS_MS.find((step) => span_ms / step <= most) ?? TICKS_MS.at(-1) * Math.ceil(span_ms / TICKS_MS.at(-1) / most);
}

/** Returns round times, of which days begin at midnight and weeks on Mondays. @returns {number[]} */
export function ticks(begin, end, step_ms) {
  const found = [];
  for (let at = A_MONDAY + Math.ceil((begin - A_MONDAY) / step_ms) * step_ms; at <= end; at += step_ms) found.push(at);
  return found;
}

/** Formats a tick of a time axis. @param {number} at @param {number} step_ms @returns {string} */
export function tick(at, step_ms) {
  const date = new Date(at);
  if (step_ms < DAY_MS && at % DAY_MS !== 0) return minute(at);
  const name = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  if (step_ms < 28 * DAY_MS) return `${WEEKDAYS[date.getUTCDay()]} ${name}`;
  return `${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
}

/** @param {number} step_ms @returns {string} such as "6 hours" */
export function interval(step_ms) {
  const units = [
    [7 * DAY_MS, "week"],
    [DAY_MS, "day"],
    [3_600_000, "hour"],
    [60_000, "minute"],
    [1_000, "second"],
  ];
  const [length, name] = units.find(([each]) => step_ms % each === 0) ?? [1, "ms"];
  const count = step_ms / length;
  return count === 1 ? name : `${count} ${name}s`;
}

/** Formats a number for an axis: 950, 1.2k, 4M. @param {number} value @returns {string} */
export function short(value) {
  for (const [limit, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= limit) return `${Number((value / limit).toFixed(1))}${unit}`;
  }
  return String(Number(value.toFixed(2)));
}

/** @param {string} value of a filter @returns {string} */
export function filterText(value) {
  return value === MISSING ? "not known" : value;
}
