/** Answers: what happened in the cluster, when, and why? */

import { usePoll, useStream } from "../api.js";
import * as format from "../format.js";
import { html, useEffect, useState } from "../html.js";
import { EventList, silence } from "../parts/event-list.js";
import { Failure, Waiting } from "../parts/state.js";
import { Search } from "../parts/table.js";
import { Heading } from "../parts/words.js";
import { query, setFilters } from "../router.js";

const MOST_SHOWN = 500;
const RELOAD_MS = 30000;

const identity = ({ reporter, sequence, at }) => `${reporter}-${sequence}-${at}`;

/** @param {{filters: Record<string, string>}} props */
export function EventsPage({ filters }) {
  const { kind = "", topic = "", group = "", broker = "", all = "" } = filters;
  const asked = query({ kind, topic, group, broker, all });
  const { data, error, isLoading } = usePoll(`api/events${asked ? `${asked}&` : "?"}limit=200`, RELOAD_MS);
  const [fresh, setFresh] = useState([]);
  useEffect(() => setFresh([]), [asked]);
  const state = useStream(`api/events/stream${asked}`, (event) => {
    setFresh((before) => [event, ...before].slice(0, MOST_SHOWN));
  });
  return html`
    <${Heading}
      over="Cluster"
      title="Events"
      note="Decisions of the brokers, newest first, each with the cause that the broker gave."
    />
    <${Filters} ...${{ kind, topic, group, broker, all }} kinds=${data?.kinds ?? []} state=${state} />
    ${!data && (error ? html`<${Failure} error=${error} />` : html`<${Waiting} />`)}
    ${data && html`<${Silent} brokers=${data.silent} />`}
    ${data &&
    html`<div class="card" aria-busy=${isLoading ? "true" : "false"}>
      <${EventList} events=${merged(fresh, data.events)} empty=${asked ? NONE_FOUND : NONE_YET} />
    </div>`}
  `;
}

const NONE_FOUND = html`No event fits these filters. <button type="button" class="small" onClick=${clear}>Show all events</button>`;
const NONE_YET = `There are no events yet. Brokers keep the last few thousand in memory; they report elections, changes
  of the ISR, rebalances, new topics and more.`;

function clear() {
  setFilters({ kind: "", topic: "", group: "", broker: "" });
}

/** Merges the stream and the list, which overlap. */
function merged(fresh, listed) {
  const seen = new Set();
  return [...fresh, ...listed]
    .filter((event) => !seen.has(identity(event)) && seen.add(identity(event)))
    .sort((first, second) => second.at - first.at)
    .slice(0, MOST_SHOWN);
}

function Filters({ kind, topic, group, broker, all, kinds, state }) {
  const kindsShown = kind && !kinds.includes(kind) ? [...kinds, kind] : kinds;
  const live = { open: "live", connecting: "connecting …", off: "" };
  return html`<form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
    <select aria-label="Kind of event" value=${kind} onChange=${(event) => setFilters({ kind: event.target.value })}>
      <option value="">All kinds</option>
      ${kindsShown.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}
    </select>
    <${Search} value=${topic} label="Topic" onInput=${(text) => setFilters({ topic: text })} />
    <input aria-label="Group" placeholder="Group" value=${group} onInput=${(event) => setFilters({ group: event.target.value })} />
    <input
      class="narrow"
      aria-label="Broker"
      placeholder="Broker"
      inputmode="numeric"
      pattern="[0-9]*"
      value=${broker}
      onInput=${(event) => setFilters({ broker: event.target.value.replace(/\D/g, "") })}
    />
    <label title="Each replica also repeats the controller's decisions, which are shown only on request">
      <input type="checkbox" checked=${Boolean(all)} onChange=${(event) => setFilters({ all: event.target.checked ? 1 : "" })} />
      Include routine events
    </label>
    <span class=${state === "open" ? "live" : "note"} role="status">${live[state]}</span>
  </form>`;
}

function Silent({ brokers }) {
  if (!brokers.length) return null;
  const decided = brokers.length === 1 ? "it" : "they";
  return html`<p class="stale">${silence(brokers)} What only ${decided} decided is missing below.</p>`;
}
