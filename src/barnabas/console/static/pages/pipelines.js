/** Answers: what have the pipelines read, what did they reject, and how old are their pages? */

import * as format from "../format.js";
import { html } from "../html.js";
import { Polled } from "../parts/state.js";
import { Card, Heading, Keys, Known, Mark, Name, Time } from "../parts/words.js";
import { link } from "../router.js";

const OVER = html`<a href="#/pipelines">Pipelines</a>`;

export function PipelinesPage() {
  return html`
    <${Heading} over="Files" title="Pipelines" note="What pipelines have written to their folders, with the account of their records." />
    <${Polled} path="api/pipelines">
      ${(data) =>
        data.folders
          ? html`<div class="cards">${data.pipelines.map((row) => html`<${Pipeline} key=${`${row.number} ${row.page}`} row=${row} />`)}</div>`
          : html`<div class="empty">
              No folder of a pipeline was given. Start the console with the folder that a pipeline writes to:
              <code class="command">barnabas console --pipeline out</code>
            </div>`}
    <//>
  `;
}

function Pipeline({ row }) {
  const name = html`<${Name}>${[row.folder, row.page].filter(Boolean).join("/")}<//>`;
  const title = row.page && !row.problem ? html`<a href=${link(["pipelines", row.number, row.page])}>${name}</a>` : name;
  return html`<${Card} title=${title} note=${html`<${Ages} row=${row} />`}>
    ${row.problem && html`<p class="stale" role="status">${row.problem}</p>`}
    ${row.explore && html`<div class="actions"><a class="button" href=${row.explore}>Explore</a></div>`}
    ${row.read != null && html`
      <${Keys} figures=${figures(row)} />
      ${row.balances === false && html`<p class="text-bad">These figures do not add up: records are missing or were counted twice.</p>`}
      ${row.reasons.length > 0 && html`<ul class="plain" aria-label="Why records were rejected">
        ${row.reasons.map(({ reason, records }) => html`<li key=${reason}><${Mark} tone="warning">${format.number(records)}<//> <bdi>${reason}</bdi></li>`)}
      </ul>`}
    `}
  <//>`;
}

function Ages({ row }) {
  const made = row.made_at != null && html`Page written <${Time} at=${row.made_at} />, ${age(row.made_at)} ago. `;
  return html`${made}${row.batch_at != null && html`Last batch <${Time} at=${row.batch_at} />, ${age(row.batch_at)} ago.`}`;
}

const age = (at) => format.duration(Math.round(Math.max(0, (Date.now() - at) / 1000)));

function figures(row) {
  return [
    { value: format.number(row.read), what: "records read" },
    { value: format.number(row.valid), what: "valid" },
    { value: format.number(row.rejected), what: "rejected", tone: row.rejected ? "warning" : "" },
    { value: html`<${Known} value=${row.sent_twice} />`, what: "sent twice", about: "counted once" },
  ];
}

/** @param {{number: string, name: string}} props */
export function PipelinePage({ number, name }) {
  const address = `pipelines/${encodeURIComponent(number)}/${encodeURIComponent(name)}`;
  return html`<${Polled} path="api/pipelines">
    ${(data) => {
      const row = data.pipelines.find((each) => String(each.number) === number && each.page === name);
      if (!row || row.problem) {
        return html`<${Heading} over=${OVER} title=${html`<${Name}>${name}<//>`} />
          <p class="stale" role="status">${row?.problem || "There is no such page in the folder any more."}</p>`;
      }
      return html`<${Heading} over=${OVER} title=${html`<${Name}>${name}<//>`} note=${html`<${Ages} row=${row} />`}>
          <div class="actions">
            ${row.explore && html`<a class="button" href=${row.explore}>Explore</a>`}
            <a class="button" href=${address} target="_blank" rel="noopener">Open in a tab of its own</a>
          </div>
        <//>
        <iframe class="inner" key=${row.made_at} src=${address} sandbox="allow-downloads" title=${`The page ${name} of the pipeline`}></iframe>`;
    }}
  <//>`;
}
