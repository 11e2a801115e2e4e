/** Draws the rows behind the figures, one page at a time, and searches them for words. */

import { ask, useAnswer } from "../api.js";
import { go, isSet, link, query, toggled, valueOf, without, withValues } from "../address.js";
import * as format from "../../console/format.js";
import { html, useEffect, useRef, useState } from "../../console/html.js";
import { bounds } from "../periods.js";
import * as words from "../words.js";
import { Matching, Trouble } from "./overview.js";
import { Timeline } from "./timeline.js";

const TYPING_MS = 250;
const PAGE = "50";
/** What only the details of a row show. */
const HIDDEN = ["more", "template"];

/** @param {{address: any, site: any, parameters: import("../address.js").Pairs}} props */
export function Rows({ address, site, parameters }) {
  const { pairs } = address;
  const sent = without(parameters, ["step", "within", "compare", "compare_until"]);
  const paged = withValues(sent, { limit: valueOf(sent, "limit") || PAGE });
  const { data, error, isLoading, retry } = useAnswer(`api/rows${query(paged)}`, site?.batch);
  const file = query(without(sent, ["before", "limit"]));
  // The server stops a long search, and continues it when it is asked again.
  const isSearching = data?.searched_from != null;
  useEffect(() => {
    if (isSearching && !isLoading && !error) retry();
  }, [data, isLoading]);
  const select = (begin, end) =>
    go(link("rows", withValues(pairs, { ...bounds(begin, end), period: "", before: "" })));
  const isDimmed = isLoading && !isSearching;
  return html`<div class="filters search">
      ${site?.has_search && html`<${Words} pairs=${pairs} />`}
      <a class="button" href=${`api/rows.csv${file}`} download>CSV of all matching rows</a>
    </div>
    ${error && html`<${Trouble} error=${error} retry=${retry} />`}
    ${data
      ? html`<${Matching} count=${data.matching} kind=${site?.kind} isLoading=${isDimmed} />
          ${isSearching &&
          html`<p class="note searching">Searching: got back to ${words.moment(data.searched_from)} so far …</p>`}
          <div class="figures" data-loading=${isDimmed ? "" : undefined} aria-busy=${isLoading ? "true" : "false"}>
            ${data.over_time?.series.length &&
            html`<section class="card over-time">
              <${Timeline} timeline=${data.over_time} title="Matching rows" height=${150} onSelect=${select} />
            </section>`}
            <section class="card list">
              <${List} data=${data} pairs=${pairs} site=${site} />
              <${Paging} pairs=${pairs} data=${data} />
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
    placeholder='words, or "a phrase"'
    title="Press / to come here"
    maxlength="1000"
    autocomplete="off"
    spellcheck=${false}
    value=${typed}
    onInput=${input}
  />`;
}

const isNumeric = ({ unit }) => unit !== "text" && unit !== "time";

function List({ data, pairs, site }) {
  const [opened, setOpened] = useState("");
  if (!data.rows.length) return html`<p class="empty">No row matches these filters.</p>`;
  const hasDetails = data.ids != null;
  const shown = data.columns
    .map((column, index) => ({ ...column, index }))
    .filter(({ label }) => !hasDetails || !HIDDEN.includes(label.toLowerCase()));
  const more = data.columns.findIndex(({ label }) => hasDetails && label.toLowerCase() === "more");
  return html`<div class="scroll rows" tabindex="0" role="group" aria-label="Rows">
    <table>
      <caption class="unseen">Matching rows, the latest first</caption>
      <thead>
        <tr>
          ${shown.map(
            (column) => html`<th scope="col" class=${isNumeric(column) ? "numeric" : undefined}>${column.label}</th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${data.rows.map((cells, number) => {
          const id = data.ids?.[number] ?? String(number);
          const toggleDetails = () => setOpened(opened === id ? "" : id);
          return [
            html`<tr key=${id}>
              ${shown.map((column, place) => {
                const text = words.cellText(cells[column.index], column.unit);
                const kind = `${isNumeric(column) ? "numeric" : ""} ${column.unit === "time" ? "time" : ""}`.trim();
                const isLong = text.length > 40;
                const inside = html`<bdi class=${`text ${text.length > 36 ? "long" : ""}`} title=${isLong ? text.slice(0, 2_000) : undefined}
                  >${text}</bdi
                >`;
                if (place > 0) {
                  const isLast = place === shown.length - 1;
                  const extent = cells[column.index] == null ? "none" : text.length > 36 ? "broad" : "";
                  return html`<td class=${`${kind} ${extent}`.trim() || undefined}>
                    ${inside}${isLast && more >= 0 && cells[more] != null && html`<small> + further lines</small>`}
                  </td>`;
                }
                return html`<th scope="row" class=${kind || undefined}>
                  ${hasDetails
                    ? html`<button
                        type="button"
                        class="opener"
                        aria-expanded=${opened === id ? "true" : "false"}
                        aria-label=${`Details of the row of ${text}`}
                        onClick=${toggleDetails}
                      >
                        <span aria-hidden="true">${opened === id ? "▾" : "▸"}</span> ${inside}
                      </button>`
                    : inside}
                </th>`;
              })}
            </tr>`,
            opened === id &&
              html`<tr class="details" key=${`${id} details`}>
                <td colspan=${shown.length}><${Details} id=${id} data=${data} cells=${cells} pairs=${pairs} site=${site} /></td>
              </tr>`,
          ];
        })}
      </tbody>
    </table>
  </div>`;
}

/** Draws a row with its whole texts. A click on a property filters by it. */
function Details({ id, data, cells, pairs, site }) {
  const [row, setRow] = useState(cells);
  const [error, setError] = useState(null);
  useEffect(() => {
    const abort = new AbortController();
    ask(`api/rows${query([["row", id]])}`, abort.signal).then(
      (found) => !abort.signal.aborted && setRow(found.rows[0] ?? cells),
      (problem) => !abort.signal.aborted && setError(problem),
    );
    return () => abort.abort();
  }, [id]);
  const dimensionOf = (label) => site?.dimensions.find((each) => each.label.toLowerCase() === label.toLowerCase());
  return html`<dl class="fields">
    ${data.columns.map(({ label, unit }, index) => {
      if (row[index] == null) return null;
      const text = words.cellText(row[index], unit);
      const dimension = unit === "text" && dimensionOf(label);
      const canFilter = dimension && !isSet(pairs, dimension.name, text);
      return html`<div>
        <dt>${label}</dt>
        <dd>
          ${text.length > 60 || text.includes("\n") ? html`<pre><bdi>${text}</bdi></pre>` : html`<bdi>${text}</bdi>`}
          ${canFilter &&
          html`${" "}<button
              type="button"
              class="small"
              aria-label=${`Only rows with ${label} ${text}`}
              onClick=${() => go(link("rows", toggled(pairs, dimension.name, text)))}
            >
              only these
            </button>`}
        </dd>
      </div>`;
    })}
    ${error && html`<p class="alarm" role="alert">${error.message}</p>`}
  </dl>`;
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
