/** Draws tables that can be sorted by their headers and have fewer columns on a narrow screen. */

import * as format from "../format.js";
import { html } from "../html.js";
import { setFilters } from "../router.js";

/**
 * @typedef {object} Column
 * @property {string} title
 * @property {string} [about] a tooltip for the title
 * @property {string} [sort] the server's name for this sort order; "" if the column cannot be sorted
 * @property {boolean} [isNumeric] aligned to the right
 * @property {boolean} [isRoomy] hidden on a narrow screen
 * @property {(row: any) => any} cell
 */

/**
 * @param {{caption: string, columns: Column[], rows: any[], keyOf: (row: any) => string | number,
 *     sort?: string, isDescending?: boolean, empty?: any}} props
 */
export function Table({ caption, columns, rows, keyOf, sort, isDescending, empty }) {
  if (!rows.length && empty) return html`<div class="empty">${empty}</div>`;
  const classOf = ({ isNumeric, isRoomy }) =>
    `${isNumeric ? "numeric" : ""} ${isRoomy ? "roomy-cell" : ""}`.trim() || undefined;
  return html`<div class="scroll">
    <table>
      <caption class="unseen">${caption}</caption>
      <thead>
        <tr>
          ${columns.map(
            (column) => html`<${HeadCell}
              key=${column.title}
              column=${column}
              class=${classOf(column)}
              isSorted=${Boolean(column.sort) && column.sort === sort}
              isDescending=${isDescending}
            />`,
          )}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) => html`<tr key=${keyOf(row)}>
            ${columns.map(
              (column, index) =>
                index === 0
                  ? html`<th scope="row" class=${classOf(column)}>${column.cell(row)}</th>`
                  : html`<td class=${classOf(column)}>${column.cell(row)}</td>`,
            )}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

function HeadCell({ column, isSorted, isDescending, ...rest }) {
  const { title, about, sort, isNumeric } = column;
  if (!sort) return html`<th scope="col" title=${about} ...${rest}>${title}</th>`;
  const order = isSorted ? (isDescending ? "descending" : "ascending") : "none";
  // Numbers are first sorted in descending order, and names in ascending order.
  const next = isSorted ? !isDescending : Boolean(isNumeric);
  const choose = () => setFilters({ sort, descending: next ? 1 : "", page: "" });
  return html`<th scope="col" aria-sort=${order} ...${rest}>
    <button class="sorter" type="button" title=${about} onClick=${choose}>
      ${title}<span aria-hidden="true">${isSorted ? (isDescending ? " ↓" : " ↑") : ""}</span>
    </button>
  </th>`;
}

/** Draws the search field, which "/" focuses. */
export function Search({ value, label, onInput }) {
  return html`<input
    type="search"
    data-search
    aria-label=${label}
    placeholder=${label}
    title="Press / to come here"
    maxlength="249"
    spellcheck=${false}
    autocomplete="off"
    value=${value}
    onInput=${(event) => onInput(event.target.value)}
  />`;
}

/** Draws the controls for the pages of a list. The server sends one page; pages are numbered from 0. */
export function Paging({ page, matching, size, noun }) {
  const pages = Math.max(1, Math.ceil(matching / size));
  if (pages === 1) return html`<p class="note after">${format.counted(matching, noun)}</p>`;
  const from = page * size + 1;
  const to = Math.min(matching, (page + 1) * size);
  return html`<nav class="paging" aria-label="Pages">
    <button type="button" disabled=${page <= 0} onClick=${() => setFilters({ page: page - 1 })}>
      Previous
    </button>
    <span>${format.number(from)} to ${format.number(to)} of ${format.counted(matching, noun)}</span>
    <button type="button" disabled=${page >= pages - 1} onClick=${() => setFilters({ page: page + 1 })}>
      Next
    </button>
  </nav>`;
}
