/** Reads and writes the address of the page: "#/topics/orders/messages?partition=2". */

import { useEffect, useState } from "./html.js";

/**
 * @typedef {object} Address
 * @property {string[]} path the segments, such as ["topics", "orders"]
 * @property {Record<string, string>} filters
 */

/** @param {string} hash @returns {Address} */
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return {
    path: path.split("/").filter(Boolean).map(decode),
    filters: Object.fromEntries(new URLSearchParams(query)),
  };
}

function decode(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment; // the user typed an invalid escape, such as a single "%"
  }
}

/** Returns the query string for the filters that are set. @param {Record<string, unknown>} filters */
export function query(filters) {
  const set = Object.entries(filters).filter(([, value]) => value !== "" && value != null);
  const text = new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString();
  return text ? `?${text}` : "";
}

/** Returns the address as a link. @param {(string | number)[]} path @param {object} [filters] */
export function link(path, filters = {}) {
  return `#/${path.map((segment) => encodeURIComponent(String(segment))).join("/")}${query(filters)}`;
}

/** Changes filters of the current page; "" removes a filter. @param {Record<string, unknown>} changes */
export function setFilters(changes) {
  const { path, filters } = parse(location.hash);
  // Replace the history entry; otherwise, each typed letter would add one.
  history.replaceState(null, "", link(path, { ...filters, ...changes }));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** @returns {Address} the current address; the component is drawn again when it changes */
export function useAddress() {
  const [address, setAddress] = useState(() => parse(location.hash));
  useEffect(() => {
    const update = () => setAddress(parse(location.hash));
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  return address;
}
