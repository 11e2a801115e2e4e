/** Draws events of the brokers, each with the cause that the broker itself gave. */

import { html } from "../html.js";
import { BrokerLink, GroupLink, Mark, Time, TopicLink } from "./words.js";

/** @param {{events: object[], empty: any}} props rows such as `EventRow` of shapes.py */
export function EventList({ events, empty }) {
  if (!events.length) return html`<div class="empty">${empty}</div>`;
  return html`<ol class="events">
    ${events.map((event) => html`<${Event} key=${`${event.reporter}-${event.sequence}-${event.at}`} event=${event} />`)}
  </ol>`;
}

function Event({ event }) {
  const needsYou = event.harmless === false;
  return html`<li class=${needsYou ? "needs" : event.severity === "WARNING" ? "warns" : ""}>
    <div class="when"><${Time} at=${event.at} /></div>
    <div class="what">
      <p class="line"><bdi>${event.text}</bdi></p>
      ${event.cause && html`<p class="cause"><span>Cause:</span> <bdi>${event.cause}</bdi></p>`}
      ${event.advice && html`<p class="advice"><span>Advice:</span> ${event.advice}</p>`}
      <p class="marks">
        <${Mark}>${event.kind}<//>
        ${event.harmless === true && html`<${Mark} tone="good">harmless<//>`}
        ${needsYou && html`<${Mark} tone="warning">needs attention<//>`}
        ${event.topic && html`<${TopicLink} name=${event.topic} />`}
        ${event.partition >= 0 && html`<span>partition ${event.partition}</span>`}
        ${event.group && html`<${GroupLink} id=${event.group} />`}
        ${event.broker >= 0 && html`<${BrokerLink} id=${event.broker} />`}
        <span class="by">reported by ${event.reporter}</span>
      </p>
    </div>
  </li>`;
}
