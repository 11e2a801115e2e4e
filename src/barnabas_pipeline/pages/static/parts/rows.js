/** Draws the rows behind the figures, one page at a time, and searches them for words. */

import { useAnswer } from "../api.js";
import { go, link, query, valueOf, without, withValues } from "../address.js";
import * as format from "../../console/format.js";
import { html, useEffect, useRef, useState } from "../../console/html.js";
import { bounds } from "../periods.js";
import * as words from "../words.js";
import { Matching, Trouble } from "./overview.js";
import { Timeline } from "./timeline.js";

const TYPING_MS = 250;
const PAGE = "50";

/** @param {{address: any, site: any, parameters: import("../address.js").Pairs}} props */
export function Rows({ address, site, parameters }) {
  const { pairs } = address;
  const sent = without(parameters, ["step", "within", "compare", "compare_until"]);
  const paged = withValues(sent, { limit: valueOf(sent, "limit") || PAGE });
  const { data, of, error, isLoading, retry } = useAnswer(`api/rows${query(paged)}`, site?.batch);
  const file = query(without(sent, ["before", "limit"]));
  const select = (begin, end) =>
    go(link("rows", withValues(pairs, { ...bounds(begin, end), period: "", before: "" })));
  return html`<div class="filters search">
      ${site?.has_search && html`<${Words} pairs=${pairs} />`}
      <a class="button" href=${`api/rows.csv${file}`} download>CSV of all matching rows</a>
    </div>
    ${error && html`<${Trouble} error=${error} retry=${retry} />`}
    ${data
      ? html`<${Matching} count=${data.matching} kind=${site?.kind} isLoading=${isLoading} />
          <div class="figures" data-loading=${isLoading ? "" : undefined} aria-busy=${isLoading ? "true" : "false"}>
            ${data.over_time?.series.length &&
            html`<section class="card over-time">
              <${Timeline} timeline=${data.over_time} title="Matching rows" height=${150} onSelect=${select} />
            </section>`}
            <section class="card list">
              <${List} data=${data} />
              <${Paging} pairs=${pairs} data=${data} of=${of} />
            </section>
          </div>`
      : !error && html`<p class="empty waiting" role="status">Loading …</p>`}`;
}

function Words({ pairs }) {
  const current = valueOf(pairs, "words");
  const [typed, setTyped] = useState(current);
  const timer = useRef(0);
  useEffect(() => setTyped(current), [current]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const input = (event) => {
    const value = event.target.value;
    setTyped(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => go(link("rows", withValues(pairs, { words: value, before: "" })), true), TYPING_MS);
  };
  return html`<input
    data-search
    type="search"
    aria-label="Search the rows for words"
    placeholder="Search the rows for words"
    title="Press / to come here"
    maxlength="1000"
    autocomplete="off"
    spellcheck=${false}
    value=${typed}
    onInput=${input}
  />`;
}

const isNumeric = ({ unit }) => unit !== "text" && unit !== "time";

function List({ data }) {
  if (!data.rows.length) return html`<p class="empty">No row matches these filters.</p>`;
  return html`<div class="scroll rows" tabindex="0" role="group" aria-label="Rows">
    <table>
      <caption class="unseen">Matching rows, the latest first</caption>
      <thead>
        <tr>
          ${data.columns.map(
            (column) => html`<th scope="col" class=${isNumeric(column) ? "numeric" : undefined}>${column.label}</th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${data.rows.map(
          (cells, row) => html`<tr key=${row}>
            ${cells.map((cell, index) => {
              const column = data.columns[index];
              const text = words.cellText(cell, column.unit);
              const kind = `${isNumeric(column) ? "numeric" : ""} ${column.unit === "time" ? "time" : ""}`.trim();
              const inside = html`<bdi class="text" title=${text.length > 40 ? text : undefined}>${text}</bdi>`;
              return index === 0
                ? html`<th scope="row" class=${kind || undefined}>${inside}</th>`
                : html`<td class=${kind || undefined}>${inside}</td>`;
            })}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

function Paging({ pairs, data }) {
  const cursor = valueOf(pairs, "before");
  if (!cursor && !data.next) return null;
  const open = (before) => () => {
    go(link("rows", withValues(pairs, { before })));
    document.querySelector(".list")?.scrollIntoView({ block: "start" });
  };
  return html`<nav class="paging" aria-label="Pages of rows">
    <button type="button" disabled=${!cursor} onClick=${open("")}>Latest</button>
    <button type="button" disabled=${!cursor} onClick=${() => history.back()}>Newer</button>
    <span>${format.counted(data.rows.length, "row")} of ${format.number(data.matching)}</span>
    <button type="button" disabled=${!data.next} onClick=${open(data.next)}>Older</button>
  </nav>`;
}
