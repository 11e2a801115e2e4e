/** Draws a key, a value or the value of a header: JSON, text, bytes or null. */

import * as format from "../format.js";
import { html, useMemo } from "../html.js";
import { Mark } from "./words.js";

const PREVIEW = 200;
const LARGE = 3000;

/** Draws the beginning of the content on one line. @param {{content: object}} props `Content` of shapes.py */
export function Preview({ content }) {
  const { text, form, size } = content;
  if (text == null) return html`<${Mark} title="There is none, which is not the same as an empty one">null<//>`;
  if (text === "") return html`<${Mark}>empty<//>`;
  const line = text.slice(0, PREVIEW * 2).replace(/\s+/g, " ").slice(0, PREVIEW);
  const isAll = line.length >= text.length && !content.is_cut;
  return html`<span class="preview">
    <code><bdi>${line}${isAll ? "" : "…"}</bdi></code>
    ${form === "hex" && html`<${Mark} title="These bytes are not text">hex<//>`}
    ${!isAll && html`<span class="where">${format.bytes(size)}</span>`}
  </span>`;
}

/**
 * Draws the whole content.
 * @param {{content: object, name: string, onAll?: () => void, isAsking?: boolean}} props
 */
export function Whole({ content, name, onAll, isAsking }) {
  const { text, form, size, is_cut: isCut } = content;
  return html`<section class="content" aria-label=${name}>
    <p class="where"><b>${name}</b> ${form === "null" ? "" : `${form}, ${format.bytes(size)}`}</p>
    ${text == null ? html`<${Mark}>null<//>` : html`<${Body} text=${text} form=${form} isCut=${isCut} />`}
    ${isCut &&
    html`<p class="where">
      This is only the beginning.
      ${onAll && html`<button type="button" class="small" disabled=${isAsking} onClick=${onAll}>Show all ${format.bytes(size)}</button>`}
    </p>`}
  </section>`;
}

function Body({ text, form, isCut }) {
  const pieces = useMemo(() => (form === "json" ? format.prettyJson(text) : null), [text, form]);
  if (text === "") return html`<${Mark}>empty<//>`;
  const drawn = pieces
    ? pieces.map(({ text: piece, kind }) => (kind === "mark" ? piece : html`<span class=${`json-${kind}`}>${piece}</span>`))
    : form === "hex"
      ? format.prettyHex(text)
      : text;
  const block = html`<pre tabindex="0"><bdi>${drawn}${isCut ? "…" : ""}</bdi></pre>`;
  if (text.length < LARGE) return block;
  return html`<div class="tall">${block}</div>`;
}
