/** Draws the rows of a card in its look: bars, a table, a funnel, a grid of weeks, a heat map or columns. */

import { html } from "../../console/html.js";
import * as words from "../words.js";

/**
 * @typedef {object} Look
 * @property {any} card
 * @property {(key: string) => boolean} isOn whether the row filters
 * @property {(key: string) => void} toggle
 */

const isNumeric = ({ unit }) => unit !== "text" && unit !== "time";
const largestOf = (rows) => Math.max(0, ...rows.map(({ cells }) => Number(cells[1]) || 0)) || 1;

/** Draws a label, which filters when it is clicked. */
function Label({ row, text, isOn, toggle, children }) {
  const inside = html`<bdi>${text}</bdi>${children}`;
  if (row.key == null) return html`<span class="label" title=${text}>${inside}</span>`;
  const on = isOn(row.key);
  return html`<button
    type="button"
    class="label"
    aria-pressed=${on ? "true" : "false"}
    title=${`${text}\n${on ? "Click to remove this filter" : "Click to show only this"}`}
    onClick=${() => toggle(row.key)}
  >
    ${inside}
  </button>`;
}

function Change({ row, card }) {
  const place = card.columns.findIndex(({ unit }, index) => index > 0 && isNumeric({ unit }));
  const unit = card.columns[place]?.unit;
  const text = words.change(row.cells[place], row.before, unit);
  if (!text) return null;
  return html`<em class="change" title=${`other period: ${words.cellText(row.before, unit)}`}>${text}</em>`;
}

/** @param {Look} props */
export function Bars({ card, isOn, toggle }) {
  const largest = largestOf(card.rows);
  const tone = /error|fail|not_found|missing/.test(card.name) ? "errors" : /robot/.test(card.name) ? "robots" : "";
  return html`<ol class=${`bars ${tone}`}>
    ${card.rows.map((row, index) => {
      const share = `${Math.max(0, (100 * (Number(row.cells[1]) || 0)) / largest)}%`;
      const rest = row.cells.map((cell, number) => [cell, card.columns[number]]).slice(2);
      const small = rest.filter(([cell, column]) => column?.unit === "text" && cell != null && cell !== "");
      const figures = rest.filter(([cell, column]) => column?.unit !== "text" && cell != null);
      return html`<li
        key=${row.key ?? index}
        style=${{ "--share": share }}
        class=${row.key != null && isOn(row.key) ? "on" : undefined}
      >
        <${Label} row=${row} text=${words.cellText(row.cells[0], card.columns[0].unit)} isOn=${isOn} toggle=${toggle}>
          ${small.length > 0 &&
          html`<small>${small.map(([cell, column]) => `${column.label} ${cell}`).join(", ")}</small>`}
        <//>
        <b>${words.cellText(row.cells[1], card.columns[1]?.unit)}</b>
        ${figures.map(([cell, column]) => html`<em title=${column.label}>${words.cellText(cell, column.unit)}</em>`)}
        <${Change} row=${row} card=${card} />
      </li>`;
    })}
  </ol>`;
}

/** @param {Look} props */
export function Steps({ card }) {
  const largest = largestOf(card.rows);
  return html`<ol class="bars steps">
    ${card.rows.map((row, index) => {
      const visits = Number(row.cells[1]) || 0;
      const before = index ? Number(card.rows[index - 1].cells[1]) || 0 : visits;
      const lost = before - visits;
      const text = words.cellText(row.cells[0], "text");
      return html`<li key=${index} style=${{ "--share": `${(100 * visits) / largest}%` }}>
        <span class="label" title=${text}>
          <bdi>${text}</bdi>
          ${index > 0 &&
          html`<small
            >${words.cellText(lost, "count")} ${lost === 1 ? "visit" : "visits"} ended before
            ${before > 0 && ` (${words.percent(lost / before)})`}</small
          >`}
        </span>
        <b>${words.cellText(visits, "count")}</b>
        <em>${words.percent(visits / largest)}</em>
        <${Change} row=${row} card=${card} />
      </li>`;
    })}
  </ol>`;
}

/** @param {Look} props */
export function Grid({ card, isOn, toggle }) {
  const hasBefore = card.rows.some(({ before }) => before != null);
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${card.title}>
    <table>
      <thead>
        <tr>
          ${card.columns.map(
            (column) => html`<th scope="col" class=${isNumeric(column) ? "numeric" : undefined}>${column.label}</th>`,
          )}
          ${hasBefore && html`<th scope="col" class="numeric">change</th>`}
        </tr>
      </thead>
      <tbody>
        ${card.rows.map(
          (row, index) => html`<tr key=${row.key ?? index} class=${row.key != null && isOn(row.key) ? "on" : undefined}>
            ${row.cells.map((cell, number) => {
              const text = words.cellText(cell, card.columns[number].unit);
              // The button is the cell by which the row filters, which may be the second one.
              const inside =
                number === Math.max(0, row.cells.indexOf(row.key))
                  ? html`<${Label} row=${row} text=${text} isOn=${isOn} toggle=${toggle} />`
                  : html`<bdi class="text">${text}</bdi>`;
              if (number === 0) return html`<th scope="row">${inside}</th>`;
              return html`<td class=${isNumeric(card.columns[number]) ? "numeric" : undefined}>${inside}</td>`;
            })}
            ${hasBefore && html`<td class="numeric"><${Change} row=${row} card=${card} /></td>`}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** Draws how many of each week's visitors came back. @param {Look} props */
export function Retention({ card }) {
  // The last weeks have no later ones yet.
  const isUsed = card.columns.map((_, index) => index < 2 || card.rows.some(({ cells }) => cells[index] != null));
  const columns = card.columns.filter((_, index) => isUsed[index]);
  const rows = card.rows.map(({ cells }) => cells.filter((_, index) => isUsed[index]));
  return html`<div class="retention" tabindex="0" role="group" aria-label=${card.title}>
    <table>
      <thead>
        <tr>
          ${columns.map(({ label }) => html`<th scope="col">${label}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (cells) => html`<tr>
            <th scope="row">${words.cellText(cells[0], columns[0].unit)}</th>
            ${cells.slice(1).map((cell, index) => {
              const { unit, label } = columns[index + 1];
              if (index === 0) return html`<td>${words.cellText(cell, unit)}</td>`;
              if (cell == null) return html`<td></td>`;
              const of = Number(cells[1]) || 0;
              const share = unit === "share" ? cell : of ? cell / of : 0;
              const count = Math.round(unit === "share" ? cell * of : cell);
              return html`<td
                class="tinted"
                style=${{ "--share": 0.75 * Math.sqrt(Math.min(1, share)) }}
                title=${`${words.cellText(count, "count")} of ${words.cellText(of, "count")}, ${label}`}
              >
                <span>${words.percent(share)}</span>
              </td>`;
            })}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** Returns rows of a name and 24 numbers, from such rows or from rows of a name, an hour and a number. */
function weekOf(rows) {
  if (rows.some(({ cells }) => cells.length > 3)) return rows.map(({ cells }) => [cells[0], cells.slice(1)]);
  const days = new Map();
  for (const { cells } of rows) {
    const [name, hour, value] = cells;
    if (!days.has(name)) days.set(name, new Array(24).fill(0));
    days.get(name)[parseInt(hour, 10)] = value;
  }
  return [...days];
}

/** @param {Look} props */
export function Heat({ card }) {
  const week = weekOf(card.rows);
  const largest = Math.max(0, ...week.flatMap(([, values]) => values.map((value) => value ?? 0))) || 1;
  // The square root keeps quiet hours apart, and matches how the eye reads areas.
  const strength = (value) => (value == null ? 0 : 0.06 + 0.94 * Math.sqrt(value / largest));
  return html`<table class="heat">
    <thead>
      <tr>
        <td></td>
        ${(week[0]?.[1] ?? []).map(
          (_, hour) => html`<th scope="col">
            <span class=${hour % 3 ? "unseen" : hour % 6 ? "roomy" : ""}>${hour}<span class="unit">:00</span></span>
          </th>`,
        )}
      </tr>
    </thead>
    <tbody>
      ${week.map(
        ([name, values]) => html`<tr>
          <th scope="row" title=${name}>${String(name).slice(0, 3)}</th>
          ${values.map((value, hour) => {
            const text = words.cellText(value, "count");
            return html`<td title=${`${name}, ${hour}:00 to ${hour + 1}:00\n${text}`}>
              <i style=${{ "--share": strength(value) }}></i><span class="unseen">${text}</span>
            </td>`;
          })}
        </tr>`,
      )}
    </tbody>
  </table>`;
}

/** Draws columns for a few categories, in order, with their numbers on top. @param {Look} props */
export function Lengths({ card }) {
  const largest = largestOf(card.rows);
  return html`<ol class="columns">
    ${card.rows.map((row, index) => {
      const value = Number(row.cells[1]) || 0;
      return html`<li key=${index} title=${`${row.cells[0]}: ${words.cellText(value, "count")}`}>
        <div><b>${words.short(value)}</b><i style=${{ "--share": value / largest }}></i></div>
        <span>${row.cells[0]}</span>
      </li>`;
    })}
  </ol>`;
}
