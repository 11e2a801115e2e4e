/** Draws cards. A click on a row filters everything by it. */

import { ask } from "../api.js";
import { go, isSet, link, query, toggled, without } from "../address.js";
import * as format from "../../console/format.js";
import { html, useEffect, useState } from "../../console/html.js";
import { Bars, Grid, Heat, Lengths, Retention, Steps } from "./looks.js";
import { learn } from "../names.js";
import * as words from "../words.js";

const LOOKS = { bars: Bars, table: Grid, funnel: Steps, retention: Retention, heat: Heat, lengths: Lengths };
const WIDTHS = { bars: 6, funnel: 6, heat: 7, lengths: 5, table: 6, retention: 12, builder: 12 };
const CLASSES = { 4: "third", 5: "slim", 6: "half", 7: "wide", 12: "" };
const ALL_COLUMNS = 12;
const LEAST_COLUMNS = 4;
/** Cards of a few short rows, three of which fit side by side. */
const SLIM = ["device", "country", "browser", "system", "language", "host", "method", "severity", "event", "medium", "visitor"];
const MOST_CONCERNS = 6;
const MOST_EXAMPLES = 3;
const MOST_COLUMNS = 4;
const MOST_SHOWN = 500;

function widthOf(card) {
  if (card.look === "table" && card.columns.length > MOST_COLUMNS) return ALL_COLUMNS;
  return card.look === "bars" && SLIM.includes(card.dimension) ? 4 : (WIDTHS[card.look] ?? 6);
}

/**
 * Arranges cards in lines without gaps: a later card may move up into a line that it completes, and the cards
 * of a line that stays incomplete become wider.
 * @param {any[]} cards @returns {{card: any, width: string}[]} each with the class of its width
 */
export function arrange(cards) {
  const left = [...cards];
  const arranged = [];
  while (left.length) {
    const line = [left.shift()];
    let free = ALL_COLUMNS - widthOf(line[0]);
    while (free > 0) {
      const next = left.findIndex((card) => {
        const rest = free - widthOf(card);
        return rest === 0 || rest >= LEAST_COLUMNS;
      });
      if (next < 0) break;
      free -= widthOf(left[next]);
      line.push(...left.splice(next, 1));
    }
    for (const card of line) {
      const width = free > 0 ? ALL_COLUMNS / line.length : widthOf(card);
      arranged.push({ card, width: CLASSES[width] });
    }
  }
  return arranged;
}

/**
 * @param {{card: any, width: string, address: any, parameters: import("../address.js").Pairs, batch: number}} props
 *     `parameters`: those for the server, for more rows and for the file
 */
export function Card({ card, width, address, parameters, batch }) {
  const [all, setAll] = useState(null);
  const shown = all ?? card;
  const Look = LOOKS[card.look] ?? Grid;
  const { view, pairs } = address;
  const isOn = (key) => isSet(pairs, card.dimension, key);
  const toggle = (key) => go(link(view, toggled(pairs, card.dimension, key)));
  const path = `api/cards/${encodeURIComponent(card.name)}`;
  const rows = card.dimension ? shown.rows : shown.rows.map((row) => ({ ...row, key: null }));
  return html`<section class=${`card ${width}`} data-card=${card.name}>
    <div class="head">
      <h2>${card.title}</h2>
      <a href=${`${path}.csv${query(parameters)}`} download aria-label=${`CSV of ${card.title}`}>CSV</a>
    </div>
    <p class="note">${card.about}</p>
    ${all
      ? html`<${AllRows} all=${all} card=${card} isOn=${isOn} toggle=${toggle} />`
      : html`<${Look} card=${{ ...card, rows }} isOn=${isOn} toggle=${toggle} />`}
    ${(card.more || all) &&
    html`<${Expander} path=${path + query(parameters)} title=${card.title} batch=${batch} all=${all} setAll=${setAll} />`}
  </section>`;
}

/** Draws the button for all rows. They are requested again if the filters or the batch change. */
function Expander({ path, title, batch, all, setAll }) {
  const [isOpen, setIsOpen] = useState(false);
  const [error, setError] = useState(null);
  useEffect(() => {
    if (!isOpen) {
      setAll(null);
      return undefined;
    }
    const abort = new AbortController();
    ask(path, abort.signal).then(
      (card) => {
        if (abort.signal.aborted) return;
        learn([card]);
        setError(null);
        setAll(card);
      },
      (problem) => !abort.signal.aborted && setError(problem),
    );
    return () => abort.abort();
  }, [isOpen, path, batch]);
  return html`<p class="more">
    <button
      type="button"
      class="small"
      aria-expanded=${isOpen ? "true" : "false"}
      aria-label=${`${isOpen ? "Fewer" : "All"} rows of ${title}`}
      onClick=${() => setIsOpen(!isOpen)}
    >
      ${isOpen ? "Fewer rows" : "All rows"}
    </button>
    ${error && html`<span class="alarm" role="alert"> ${error.message}</span>`}
    ${isOpen && !all && !error && html`<span class="waiting"> Loading …</span>`}
  </p>`;
}

function AllRows({ all, card, isOn, toggle }) {
  const [sought, setSought] = useState("");
  const Look = LOOKS[all.look] ?? Grid;
  const wanted = sought.trim().toLowerCase();
  const matching = all.rows.filter(({ cells }) => !wanted || String(cells[0] ?? "").toLowerCase().includes(wanted));
  const rows = matching.slice(0, MOST_SHOWN).map((row) => (card.dimension ? row : { ...row, key: null }));
  return html`<input
      type="search"
      class="find"
      aria-label=${`Find in ${all.title}`}
      placeholder="find"
      value=${sought}
      onInput=${(event) => setSought(event.target.value)}
    />
    <p class="note" role="status">
      ${format.counted(matching.length, "row")}${matching.length > MOST_SHOWN &&
      `, of which ${format.number(MOST_SHOWN)} are shown; the CSV file has all`}
    </p>
    <div class="tall" tabindex="0" role="group" aria-label=${all.title}>
      <${Look} card=${{ ...all, rows }} isOn=${isOn} toggle=${toggle} />
    </div>`;
}

/** Draws the figures at the top. A click shows the rows that a figure counts. */
export function Headlines({ headlines, pairs }) {
  return html`<section class="keys" aria-label="Key figures">
    ${headlines.map((each) => {
      const rows = [...new URLSearchParams(each.rows ?? "")];
      const names = rows.map(([name]) => name);
      const changed = words.change(each.value, each.before, each.unit);
      return html`<div class="key" key=${each.name} data-headline=${each.name} title=${each.definition}>
        <b>${words.cellText(each.value, each.unit)}</b>
        <span>
          ${each.rows == null
            ? each.label
            : html`<a href=${link("rows", [...without(pairs, [...names, "before"]), ...rows])}>${each.label}</a>`}
        </span>
        <span class="about">${each.definition}</span>
        ${each.before != null &&
        html`<span class="change"
          >other period: <i>${words.cellText(each.before, each.unit)}</i> <i>${changed}</i></span
        >`}
      </div>`;
    })}
  </section>`;
}

/** Draws what a person should look at. */
export function Concerns({ concerns }) {
  if (!concerns.length) return null;
  const isUrgent = concerns.some(({ is_urgent }) => is_urgent);
  const rest = concerns.slice(MOST_CONCERNS);
  return html`<section class="alarms" role=${isUrgent ? "region" : undefined} aria-label="Needs attention">
    <h2>Needs attention</h2>
    ${concerns.slice(0, MOST_CONCERNS).map((each) => html`<${Concern} key=${each.title} each=${each} />`)}
    ${rest.length > 0 &&
    html`<details>
      <summary>${format.number(rest.length)} more</summary>
      ${rest.map((each) => html`<${Concern} key=${each.title} each=${each} />`)}
    </details>`}
  </section>`;
}

function Concern({ each }) {
  const { title, about, link: shown, examples } = each;
  const canShow = shown && !new URLSearchParams(shown).has("words"); // only rows are searched for words
  return html`<div class=${`concern ${each.is_urgent ? "urgent" : ""}`}>
    <div>
      <b><bdi>${title}</bdi></b> ${about && html`<span>${about}</span>`}
      ${canShow && html`<a href=${`#/?${shown}`} aria-label=${`Show: ${title}`}>Show</a>`}
      ${shown && html`<a href=${`#/rows?${shown}`} aria-label=${`Rows of: ${title}`}>Rows</a>`}
    </div>
    ${examples.slice(0, MOST_EXAMPLES).map((example) => html`<code><bdi>${example}</bdi></code>`)}
    ${examples.length > MOST_EXAMPLES &&
    html`<details>
      <summary>${format.number(examples.length - MOST_EXAMPLES)} more lines</summary>
      ${examples.slice(MOST_EXAMPLES).map((example) => html`<code><bdi>${example}</bdi></code>`)}
    </details>`}
  </div>`;
}
