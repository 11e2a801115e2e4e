/** Draws how full a disk is. */

import * as format from "../format.js";
import { html } from "../html.js";
import { Known, Mark } from "./words.js";

/** @param {{directory: object}} props `Directory` of shapes.py */
export function Free({ directory }) {
  const { total, usable, error } = directory;
  if (error) return html`<${Mark} tone="bad">${error}<//>`;
  if (total == null || usable == null) return html`<${Known} value=${null} unknown="The broker does not tell it" />`;
  const share = total ? (total - usable) / total : 0;
  const tone = share > 0.95 ? "bad" : share > 0.85 ? "warning" : "calm";
  return html`<div class=${`disk tone-${tone}`}>
    <svg class="gauge" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="track" width="100" height="8" rx="2" />
      <rect class="filled" width=${Math.round(share * 100)} height="8" rx="2" />
    </svg>
    <span>${format.bytes(usable)} free of ${format.bytes(total)}</span>
  </div>`;
}
