/** Draws all cards of a pipeline for the current filters. */

import { useAnswer } from "../api.js";
import { go, link, query, without, withValues } from "../address.js";
import * as format from "../../console/format.js";
import { html, useEffect } from "../../console/html.js";
import { bounds, otherText } from "../periods.js";
import { learn } from "../names.js";
import { Card, Concerns, Headlines, arrange } from "./cards.js";
import { AddFilter } from "./controls.js";
import { FunnelBuilder } from "./funnel.js";
import { Timeline } from "./timeline.js";

const TITLES = { events: "Events", access: "Traffic", logs: "Entries" };
const BUILDER = { name: "builder", look: "builder" };
const NOUNS = { events: "event", access: "hit", logs: "entry" };

/** @param {number} count @param {string} kind @returns {string} such as "3 entries" */
export function countedRows(count, kind) {
  const noun = NOUNS[kind] ?? "row";
  return format.counted(count, noun, noun === "entry" ? "entries" : `${noun}s`);
}

/** @param {{address: any, site: any, parameters: import("../address.js").Pairs}} props */
export function Overview({ address, site, parameters }) {
  const sent = without(parameters, ["words", "before", "limit", "step", "within"]);
  const { data, error, isLoading, retry } = useAnswer(`api/cards${query(sent)}`, site?.batch);
  useEffect(() => {
    if (data) learn(data.cards);
  }, [data]);
  if (!data) {
    return error
      ? html`<${Trouble} error=${error} retry=${retry} />`
      : html`<p class="empty waiting" role="status">Loading …</p>`;
  }
  const select = (begin, end) =>
    go(link("", withValues(address.pairs, { ...bounds(begin, end), period: "", before: "" })));
  const { cards } = data;
  // The user's own funnel is the first card, or comes after those that the server's operator has chosen.
  const place = Math.max(0, cards.findIndex(({ look }) => look !== "funnel"));
  const withBuilder = site?.kind === "logs" ? cards : cards.toSpliced(place, 0, BUILDER);
  return html`${error && html`<${Trouble} error=${error} retry=${retry} />`}
    <div class="tools">
      <${Matching} count=${data.matching} kind=${site?.kind} took=${data.took_ms} isLoading=${isLoading} />
      ${site && html`<${AddFilter} address=${address} site=${site} cards=${cards} />`}
    </div>
    <div class="figures" data-loading=${isLoading ? "" : undefined} aria-busy=${isLoading ? "true" : "false"}>
      <${Concerns} concerns=${data.concerns} />
      <${Headlines} headlines=${data.headlines} pairs=${address.pairs} />
      <div class="cards">
        <section class="card" data-card="timeline">
          <h2>${TITLES[site?.kind] ?? "Over time"}</h2>
          ${data.timeline?.series.length
            ? html`<${Timeline}
                timeline=${data.timeline}
                title=${TITLES[site?.kind] ?? "Over time"}
                otherText=${otherText(parameters)}
                onSelect=${select}
              />`
            : html`<p class="empty">Nothing matches these filters.</p>`}
        </section>
        ${arrange(withBuilder).map(({ card, width }) =>
          card === BUILDER
            ? html`<${FunnelBuilder} key="builder" ...${{ width, address, site, parameters, cards }} />`
            : html`<${Card} key=${card.name} ...${{ card, width, address, parameters: sent, batch: site?.batch }} />`,
        )}
      </div>
    </div>`;
}

/** Says how many rows match. Screen readers announce it. */
export function Matching({ count, kind, took, isLoading }) {
  return html`<p class="matching" role="status" aria-live="polite">
    <b>${countedRows(count, kind)}</b> ${count === 1 ? "matches" : "match"}
    <span aria-hidden="true">${isLoading ? " · loading …" : took == null ? "" : ` · ${format.number(took)} ms`}</span>
  </p>`;
}

/** Shows why a request failed. @param {{error: Error, retry: () => void}} props */
export function Trouble({ error, retry }) {
  return html`<div class="banner" role="alert">
    <p><bdi>${error.message}</bdi></p>
    <p class="retry"><button type="button" onClick=${retry}>Try again</button></p>
  </div>`;
}
