/** Builds a funnel from pages and events, and draws where visits end. */

import { useAnswer } from "../api.js";
import { go, link, query, valueOf, without, withValues } from "../address.js";
import { html, useState } from "../../console/html.js";
import * as words from "../words.js";
import { Steps } from "./looks.js";

const WINDOWS = [
  ["30min", "30 minutes"],
  ["1h", "1 hour"],
  ["2h", "2 hours"],
  ["1d", "1 day"],
  ["7d", "7 days"],
];
const MOST_STEPS = 20;
const MOST_OFFERED = 8;
const MOST_EVENTS = 4;
const MOST_SUGGESTIONS = 200;

/** Returns the pages and events that can be steps. */
function candidates(cards, dimensions) {
  return dimensions.map((name) => {
    const card = cards.find(({ dimension, look }) => dimension === name && look === "bars");
    return (card?.rows ?? []).map(({ key }) => key).filter((key) => key && key !== words.MISSING);
  });
}

/** Says how many visits complete all steps. */
function aboutOf({ about, rows }) {
  const [first, last] = [rows[0]?.cells[1], rows.at(-1)?.cells[1]];
  return first ? `${words.percent(last / first)} of the visits that begin get to the last step. ${about}` : about;
}

/** @param {{width: string, address: any, site: any, parameters: import("../address.js").Pairs, cards: any[]}} props */
export function FunnelBuilder({ width, address, site, parameters, cards }) {
  const { view, pairs } = address;
  const [typed, setTyped] = useState("");
  const steps = pairs.filter(([name]) => name === "step").map(([, value]) => value);
  const within = valueOf(pairs, "within") || "1d";
  const [pages, events] = candidates(cards, ["page", "event"]);
  const put = (next) => go(link(view, [...without(pairs, ["step"]), ...next.map((step) => ["step", step])]));
  const add = (step) => step && steps.length < MOST_STEPS && put([...steps, step]);
  const submit = (event) => {
    event.preventDefault();
    add(typed.trim());
    setTyped("");
  };
  const sent = [
    ...without(parameters, ["step", "within", "words", "before", "limit"]),
    ...steps.map((step) => ["step", step]),
    ["within", within],
  ];
  const path = steps.length > 1 ? `api/cards/funnel${query(sent)}` : "";
  const answer = useAnswer(path, site?.batch);
  const card = path ? answer.data : null;
  const offered = [...pages.slice(0, MOST_OFFERED), ...events.slice(0, MOST_EVENTS)];
  const all = [...pages, ...events].slice(0, MOST_SUGGESTIONS);
  return html`<section class=${`card builder ${width}`} data-card="builder">
    <div class="head">
      <h2>Your funnel</h2>
      ${path && html`<a href=${`api/cards/funnel.csv${query(sent)}`} download aria-label="CSV of your funnel">CSV</a>`}
    </div>
    <p class="note">${card ? aboutOf(card) : "Where do visits end? Choose two or more steps in their order."}</p>
    ${steps.length > 0 &&
    html`<ol class="chosen" aria-label="Steps">
      ${steps.map(
        (step, index) => html`<li key=${`${index} ${step}`}>
          <button
            type="button"
            class="chip"
            title=${step}
            aria-label=${`Remove step ${index + 1}: ${step}`}
            onClick=${() => put(steps.filter((_, number) => number !== index))}
          >
            <span>${index + 1}</span> <bdi>${step}</bdi> <i aria-hidden="true">×</i>
          </button>
          ${index > 0 &&
          html`<button
            type="button"
            class="small"
            aria-label=${`Move step ${index + 1} forward: ${step}`}
            title="Move forward"
            onClick=${() => put(steps.with(index - 1, step).with(index, steps[index - 1]))}
          >
            ↑
          </button>`}
        </li>`,
      )}
    </ol>`}
    ${answer.error && html`<p class="alarm" role="alert">${answer.error.message}</p>`}
    <div class="figures" data-loading=${answer.isLoading ? "" : undefined} aria-busy=${answer.isLoading ? "true" : "false"}>
      ${card && html`<${Steps} card=${card} isOn=${() => false} toggle=${() => {}} />`}
    </div>
    <form class="filters" onSubmit=${submit}>
      <input
        type="search"
        list="steps"
        aria-label="Next step: a page or the name of an event"
        placeholder="/products/* or purchase"
        maxlength="1000"
        autocomplete="off"
        spellcheck=${false}
        value=${typed}
        onInput=${(event) => setTyped(event.target.value)}
      />
      <datalist id="steps">${all.map((each) => html`<option key=${each} value=${each} />`)}</datalist>
      <button type="submit" disabled=${steps.length >= MOST_STEPS}>Add step</button>
      <label
        >within
        <select
          value=${within}
          onChange=${(event) => go(link(view, withValues(pairs, { within: event.target.value })))}
        >
          ${WINDOWS.map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`)}
          ${!WINDOWS.some(([value]) => value === within) && html`<option value=${within}>${within}</option>`}
        </select></label
      >
      ${steps.length > 0 && html`<button type="button" onClick=${() => put([])}>Clear steps</button>`}
    </form>
    <p class="offered" role="group" aria-label="Steps to choose from">
      ${offered
        .filter((each) => !steps.includes(each))
        .map(
          (each) => html`<button type="button" class="small" key=${each} title=${each} aria-label=${`Add step ${each}`} onClick=${() => add(each)}>
            + <bdi>${each}</bdi>
          </button>`,
        )}
    </p>
  </section>`;
}
