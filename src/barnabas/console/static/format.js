/** Formats figures, times and contents for people. This module does not access the page. */

/** Stands for an unknown value, which is not the same as 0. */
export const DASH = "—";

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const ONE_DIGIT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });
const TWO_DIGITS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
export const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

/** @param {number | null | undefined} value @returns {string} such as "1,234,567" */
export function number(value) {
  return value == null ? DASH : WHOLE.format(value);
}

/** @param {number | null | undefined} value @returns {string} such as "1.2 GiB" */
export function bytes(value) {
  if (value == null) return DASH;
  let rest = Math.abs(value);
  let unit = 0;
  while (rest >= 1023.5 && unit < UNITS.length - 1) {
    rest /= 1024;
    unit += 1;
  }
  const digits = unit > 0 && rest < 99.95 ? ONE_DIGIT : WHOLE;
  return `${value < 0 ? "-" : ""}${digits.format(rest)} ${UNITS[unit]}`;
}

/** @param {number | null | undefined} value per second @returns {string} such as "12.5/s" */
export function rate(value) {
  if (value == null) return DASH;
  const digits = value >= 99.95 ? WHOLE : value >= 9.995 ? ONE_DIGIT : TWO_DIGITS;
  return `${digits.format(value)}/s`;
}

/** @param {number | null | undefined} seconds @returns {string} such as "3 min 20 s" */
export function duration(seconds) {
  if (seconds == null) return DASH;
  if (seconds > 0 && seconds < 0.9995) return `${WHOLE.format(Math.max(1, seconds * 1000))} ms`;
  if (seconds < 9.95) return `${ONE_DIGIT.format(Math.max(0, seconds))} s`;
  const whole = Math.round(seconds);
  const parts = [
    [Math.floor(whole / 86400), "d"],
    [Math.floor(whole / 3600) % 24, "h"],
    [Math.floor(whole / 60) % 60, "min"],
    [whole % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  const shown = parts.slice(first, first + 2).filter(([count]) => count > 0);
  return shown.map(([count, unit]) => `${WHOLE.format(count)} ${unit}`).join(" ");
}

/** @param {number} value @returns {string} with two digits at least */
export const two = (value) => String(value).padStart(2, "0");

/** @param {number} at ms since 1970 @returns {string} such as "01:17:04", in the local time */
export function clock(at) {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/**
 * Formats a time. The date is included unless it is today.
 * @param {number | null | undefined} at ms since 1970
 * @param {number} [now]
 */
export function moment(at, now = Date.now()) {
  if (at == null) return DASH;
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return String(at);
  const today = new Date(now);
  if (date.toDateString() === today.toDateString()) return clock(at);
  const year = date.getFullYear() === today.getFullYear() ? "" : ` ${date.getFullYear()}`;
  return `${date.getDate()} ${MONTHS[date.getMonth()]}${year}, ${clock(at)}`;
}

/** @param {number | null | undefined} at @returns {string} the exact time, in UTC */
export function exact(at) {
  if (at == null) return "Not known";
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? String(at) : date.toISOString().replace("T", " ");
}

/** @param {number} count @param {string} one @param {string} [many] @returns {string} "3 topics" */
export function counted(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

const TOKENS = /"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/g;
const OPENS = { "{": "}", "[": "]" };

/**
 * Formats JSON for human readers. Returns pieces of text, each with its kind.
 *
 * The tokens themselves are not changed, whereas JSON.parse would round long numbers and drop duplicate
 * keys. Truncated JSON can be formatted, too.
 * @param {string} text
 * @returns {{text: string, kind: "key" | "string" | "word" | "mark"}[]}
 */
export function prettyJson(text) {
  const tokens = text.match(TOKENS) ?? [];
  const pieces = [];
  let depth = 0;
  const line = () => `\n${"  ".repeat(Math.min(depth, 60))}`;
  tokens.forEach((token, index) => {
    const next = tokens[index + 1];
    if (token in OPENS) {
      const isEmpty = next === OPENS[token];
      if (!isEmpty) depth += 1;
      pieces.push({ text: isEmpty ? token : token + line(), kind: "mark" });
    } else if (token === "}" || token === "]") {
      const isEmpty = OPENS[tokens[index - 1]] === token;
      if (!isEmpty) depth = Math.max(0, depth - 1);
      pieces.push({ text: isEmpty ? token : line() + token, kind: "mark" });
    } else if (token === ",") {
      pieces.push({ text: token + line(), kind: "mark" });
    } else if (token === ":") {
      pieces.push({ text: ": ", kind: "mark" });
    } else if (token.startsWith('"')) {
      pieces.push({ text: token, kind: next === ":" ? "key" : "string" });
    } else {
      pieces.push({ text: token, kind: "word" });
    }
  });
  return pieces;
}

/** @param {string} text hex digits @returns {string} sixteen bytes on each line */
export function prettyHex(text) {
  const pairs = text.replace(/\s+/g, "").match(/.{1,2}/g) ?? [];
  const lines = [];
  for (let start = 0; start < pairs.length; start += 16) {
    const offset = start.toString(16).padStart(6, "0");
    lines.push(`${offset}  ${pairs.slice(start, start + 16).join(" ")}`);
  }
  return lines.join("\n");
}
