/** Draws single words and figures, such as unknown values, coloured marks, times and links. */

import * as format from "../format.js";
import { html } from "../html.js";
import { link } from "../router.js";

/** Draws a figure, or a dash if it is not known. */
export function Known({ value, as = format.number, unknown = "Not known" }) {
  if (value == null) return html`<span class="unknown" title=${unknown}>${format.DASH}</span>`;
  return as(value);
}

/** Draws a time; a tooltip shows the exact time. */
export function Time({ at }) {
  if (at == null) return html`<${Known} value=${null} />`;
  const date = new Date(at);
  const machine = Number.isNaN(date.getTime()) ? undefined : date.toISOString();
  return html`<time dateTime=${machine} title=${format.exact(at)}>${format.moment(at)}</time>`;
}

/**
 * Draws a word on a coloured background. The colour only repeats the meaning of the word.
 * @param {{tone: "good" | "calm" | "warning" | "bad" | "", children: any, title?: string}} props
 */
export function Mark({ tone = "", title, children }) {
  return html`<span class=${`mark ${tone && `tone-${tone}`}`} title=${title}>${children}</span>`;
}

const VERDICTS = {
  "caught up": ["good", "It has read everything."],
  "catching up": ["good", "It reads faster than records arrive."],
  steady: ["calm", "Its distance to the end stays the same."],
  unknown: ["", "There are not enough measurements yet."],
  "falling behind": ["warning", "Records arrive faster than it reads."],
  stopped: ["bad", "Nobody reads, although records are waiting."],
  stuck: ["bad", "It has members, but makes no progress."],
};

/** Draws the verdict on a group or on one of its partitions. */
export function Verdict({ verdict }) {
  const [tone, title] = VERDICTS[verdict] ?? ["", undefined];
  return html`<${Mark} tone=${tone} title=${title}>${verdict}<//>`;
}

/** Draws a name chosen by a user. Its script may run in either direction, so it is isolated from the text. */
export function Name({ children }) {
  return html`<bdi class="name">${children}</bdi>`;
}

export function TopicLink({ name }) {
  return html`<a href=${link(["topics", name])}><${Name}>${name}<//></a>`;
}

export function GroupLink({ id }) {
  return html`<a href=${link(["groups", id])}><${Name}>${id || "(empty name)"}<//></a>`;
}

export function BrokerLink({ id, children }) {
  return html`<a href=${link(["brokers", id])}>${children ?? `broker ${id}`}</a>`;
}

/** Draws the large figures at the top of a page. @param {{figures: object[]}} props */
export function Keys({ figures }) {
  return html`<section class="keys" aria-label="Key figures">
    ${figures.map(
      ({ value, what, about, tone = "", href }) => html`<div class="key" key=${what}>
        <b class=${tone && `text-${tone}`}>${value}</b>
        <span>${href ? html`<a href=${href}>${what}</a>` : what}</span>
        ${about && html`<span class="about">${about}</span>`}
      </div>`,
    )}
  </section>`;
}

/** Draws a card with a heading. `width`: "half", "third", "wide", "slim" or "". */
export function Card({ title, note, width = "", aside, children }) {
  return html`<section class=${`card ${width}`}>
    <div class="head"><h2>${title}</h2>${aside}</div>
    ${note && html`<p class="note">${note}</p>`}
    ${children}
  </section>`;
}

/** Draws the header of a page. */
export function Heading({ over, title, note, children }) {
  return html`<header class="page">
    <div class="over">${over}</div>
    <h1 tabindex="-1">${title}</h1>
    ${note && html`<p class="note">${note}</p>`}
    ${children}
  </header>`;
}
