/** Remembers how the server labels the values of filters, such as the text of a template with an id. */

import { useEffect, useState } from "../console/html.js";
import * as words from "./words.js";

const labels = new Map();
const CHANGED = "barnabas-names";
const MOST = 5_000;

const keyOf = (dimension, value) => `${dimension}\n${value}`;

/** Learns the labels in an answer of the server. @param {any[]} cards */
export function learn(cards) {
  const before = labels.size;
  for (const { dimension, rows } of cards) {
    if (!dimension) continue;
    for (const { key, cells } of rows) {
      if (key == null || cells.includes(key) || labels.size >= MOST) continue;
      labels.set(keyOf(dimension, key), String(cells[0] ?? ""));
    }
  }
  if (labels.size !== before) dispatchEvent(new Event(CHANGED));
}

/** @param {string} dimension @param {string} value @returns {string} */
export function labelOf(dimension, value) {
  return labels.get(keyOf(dimension, value)) || words.filterText(value);
}

/** Draws the component again when a label becomes known. */
export function useNames() {
  const [, setCount] = useState(0);
  useEffect(() => {
    const update = () => setCount((last) => last + 1);
    addEventListener(CHANGED, update);
    return () => removeEventListener(CHANGED, update);
  }, []);
}
