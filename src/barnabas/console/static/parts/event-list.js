/** Draws events of the brokers, each with the cause that the broker itself reported. */

import { html } from "../html.js";
import { BrokerLink, GroupLink, Mark, Time, TopicLink } from "./words.js";

const AT_ONCE_MS = 2_000;

/** @param {{events: object[], empty: any, silent?: number[]}} props rows such as `EventRow` of shapes.py */
export function EventList({ events, empty, silent = [] }) {
  if (!events.length) return html`<div class="empty">${silent.length ? silence(silent) : empty}</div>`;
  return html`<ol class="events">
    ${runs(events).map((run) => html`<${Run} key=${keyOf(run.at(-1))} run=${run} />`)}
  </ol>`;
}

/** Returns a sentence about the missing events of these brokers. @param {number[]} brokers @returns {string} */
export function silence(brokers) {
  const names = brokers.length === 1 ? `Broker ${brokers[0]} keeps` : `Brokers ${brokers.join(", ")} keep`;
  return `${names} no events that can be read here: brokers of Apache Kafka have none, and brokers of Barnabas
    show them only to a user who may Describe the cluster.`;
}

/** Groups the events into runs; the events of a run follow from one decision about many partitions. */
function runs(events) {
  const found = [];
  for (const event of events) {
    const run = found.at(-1);
    if (run && isAlike(run[0], event)) run.push(event);
    else found.push([event]);
  }
  return found;
}

function isAlike(one, other) {
  return (
    one.cause !== "" &&
    one.cause === other.cause &&
    one.kind === other.kind &&
    one.harmless === other.harmless &&
    Math.abs(one.at - other.at) <= AT_ONCE_MS
  );
}

const keyOf = (event) => `${event.reporter}-${event.sequence}-${event.at}`;

function Run({ run }) {
  const [first, ...others] = run;
  if (!others.length) return html`<${Event} event=${first} />`;
  return html`<${Event} event=${first}>
    <details class="alike">
      <summary>and ${others.length} more at the same time, with the same cause</summary>
      <ol>
        ${others.map((event) => html`<li key=${keyOf(event)}><bdi>${event.text}</bdi></li>`)}
      </ol>
    </details>
  <//>`;
}

function Event({ event, children }) {
  const needsYou = event.harmless === false;
  return html`<li class=${needsYou ? "needs" : event.severity === "WARNING" ? "warns" : ""}>
    <div class="when"><${Time} at=${event.at} /></div>
    <div class="what">
      <p class="line"><bdi>${event.text}</bdi></p>
      ${event.cause && html`<p class="cause"><span>Cause:</span> <bdi>${event.cause}</bdi></p>`}
      ${event.advice && html`<p class="advice"><span>Advice:</span> ${event.advice}</p>`}
      <p class="marks">
        <${Mark}>${event.kind}<//>
        ${event.harmless === true && html`<${Mark} tone="good">clients do not notice it<//>`}
        ${needsYou && html`<${Mark} tone="warning">clients notice it<//>`}
        ${event.topic && html`<${TopicLink} name=${event.topic} />`}
        ${event.partition >= 0 && html`<span>partition ${event.partition}</span>`}
        ${event.group && html`<${GroupLink} id=${event.group} />`}
        ${event.broker >= 0 && html`<${BrokerLink} id=${event.broker} />`}
        <span class="by">reported by broker ${event.reporter}</span>
      </p>
      ${children}
    </div>
  </li>`;
}
