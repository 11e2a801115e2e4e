/** Reads and writes the address of the page: "#/rows?since=2026-03-01&page=%2Fbasket&page=%2F". */

import { useEffect, useState } from "../console/html.js";

/**
 * Everything that the page shows follows from its address, so it can be saved and sent to others. A name
 * may occur several times.
 * @typedef {[name: string, value: string][]} Pairs
 * @typedef {{view: string, pairs: Pairs}} Address
 */

/** The names that concern the period. They are not filters by a property. */
export const PERIOD_NAMES = ["period", "since", "until", "compare", "compare_until"];
/** The names that only the list of rows uses. */
export const ROW_NAMES = ["words", "before", "limit"];
/** The names that only the user's funnel uses. */
export const FUNNEL_NAMES = ["step", "within"];
const RESERVED = [...PERIOD_NAMES, ...ROW_NAMES, ...FUNNEL_NAMES];

/** @param {string} hash @returns {Address} */
export function parse(hash) {
  const [view, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { view, pairs: pairsOf(query) };
}

/** @param {string} query @returns {Pairs} */
export function pairsOf(query) {
  return [...new URLSearchParams(query)].filter(([, value]) => value !== "");
}

/** @param {Pairs} pairs @returns {string} such as "?page=%2F", or "" */
export function query(pairs) {
  const text = new URLSearchParams(pairs.map(([name, value]) => [name, value])).toString();
  return text ? `?${text}` : "";
}

/** @param {string} view @param {Pairs} pairs @returns {string} */
export function link(view, pairs) {
  return `#/${view}${query(pairs)}`;
}

/** Returns the first value, or "". @param {Pairs} pairs @param {string} name */
export function valueOf(pairs, name) {
  return pairs.find(([each]) => each === name)?.[1] ?? "";
}

/** @param {Pairs} pairs @param {string[]} names @returns {Pairs} */
export function without(pairs, names) {
  return pairs.filter(([name]) => !names.includes(name));
}

/** Sets single values; "" removes a name. @param {Pairs} pairs @param {Record<string, string>} changes @returns {Pairs} */
export function withValues(pairs, changes) {
  const set = Object.entries(changes).filter(([, value]) => value !== "");
  return [...without(pairs, Object.keys(changes)), ...set];
}

/** Adds a filter, or removes it if it is set. @param {Pairs} pairs @param {string} name @param {string} value @returns {Pairs} */
export function toggled(pairs, name, value) {
  const rest = pairs.filter(([each, its]) => each !== name || its !== value);
  const changed = rest.length < pairs.length ? rest : [...pairs, [name, value]];
  return without(changed, ["before"]);
}

/** @param {Pairs} pairs @param {string} name @param {string} value */
export function isSet(pairs, name, value) {
  return pairs.some(([each, its]) => each === name && its === value);
}

/** Returns the filters by a property, in their order. @param {Pairs} pairs @returns {Pairs} */
export function filtersOf(pairs) {
  return without(pairs, RESERVED);
}

/** Opens an address. The browser's back button returns, unless `isTyping`. @param {string} hash */
export function go(hash, isTyping = false) {
  if (hash === location.hash) return;
  if (isTyping) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** @returns {Address} the current address; the component is drawn again when it changes */
export function useAddress() {
  const [address, setAddress] = useState(() => parse(location.hash));
  useEffect(() => {
    const update = () => setAddress(parse(location.hash));
    addEventListener("hashchange", update);
    addEventListener("popstate", update);
    return () => {
      removeEventListener("hashchange", update);
      removeEventListener("popstate", update);
    };
  }, []);
  return address;
}
