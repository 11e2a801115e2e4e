/** Draws the replicas of a partition, each as a small bar that shows how far it is behind the leader. */

import * as format from "../format.js";
import { html } from "../html.js";
import { BrokerLink } from "./words.js";

/** @param {{partition: object}} props `PartitionRow` of shapes.py */
export function Replicas({ partition }) {
  const { replicas, start, high_watermark: watermark } = partition;
  const ends = replicas.map(({ end }) => end).filter((end) => end != null);
  const leader = replicas.find(({ is_leader: isLeader }) => isLeader);
  const last = leader?.end ?? (ends.length ? Math.max(...ends) : null);
  return html`<ul class="replicas">
    ${replicas.map(
      (replica) => html`<${Replica}
        key=${replica.broker}
        replica=${replica}
        last=${last}
        start=${start ?? 0}
        watermark=${watermark}
      />`,
    )}
  </ul>`;
}

function Replica({ replica, last, start, watermark }) {
  const { broker, end, is_alive: isAlive, is_leader: isLeader, in_sync: inSync } = replica;
  const behind = end == null || last == null ? null : Math.max(0, last - end);
  const state = !isAlive ? "down" : !inSync ? "out of sync" : isLeader ? "leader" : "in sync";
  const tone = !isAlive ? "bad" : !inSync ? "warning" : isLeader ? "leader" : "good";
  const distance =
    behind == null ? "its end is not known" : behind ? `${format.number(behind)} behind` : `at ${format.number(end)}`;
  return html`<li class=${`replica replica-${tone}`} title=${`Broker ${broker}: ${state}, ${distance}`}>
    <${BrokerLink} id=${broker}>${broker}<//>
    <${Bar} end=${end} last=${last} start=${start} watermark=${isLeader ? watermark : null} />
    <span class="state">${state}${behind ? html` <b>−${format.number(behind)}</b>` : ""}</span>
  </li>`;
}

const LENGTH = 100;

function Bar({ end, last, start, watermark }) {
  const span = Math.max(1, (last ?? 0) - start);
  // A lag of one record in a million would be invisible, so any lag is drawn as a gap of at least 4 units.
  const at = (offset) => (offset >= last ? LENGTH : Math.min(LENGTH - 4, Math.max(0, ((offset - start) / span) * LENGTH)));
  const isKnown = end != null && last != null;
  return html`<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
    <rect class="track" width=${LENGTH} height="10" rx="2" />
    ${isKnown && html`<rect class="filled" width=${at(end)} height="10" rx="2" />`}
    ${isKnown && watermark != null && watermark < last && html`<rect class="watermark" x=${at(watermark)} width="1.5" height="10" />`}
  </svg>`;
}
