/** Answers: does a group make progress, which member or partition holds it up, and why? */

import { Actions } from "../actions.js";
import * as format from "../format.js";
import { html } from "../html.js";
import { Chart } from "../parts/chart.js";
import { EventList } from "../parts/event-list.js";
import { Polled } from "../parts/state.js";
import { Table } from "../parts/table.js";
import { Card, Heading, Keys, Known, Mark, Name, TopicLink, Verdict } from "../parts/words.js";
import { link } from "../router.js";
import { Lag } from "./groups.js";

const TONES = { "falling behind": "warning", stopped: "bad", stuck: "bad" };

/** @param {{id: string}} props */
export function GroupPage({ id }) {
  return html`
    <${Heading} over=${html`<a href="#/groups">Consumer groups</a>`} title=${html`<${Name}>${id || "(empty name)"}<//>`}>
      <${Actions} of=${[["reset-offsets", { group: id }]]} />
    <//>
    <${Polled} path=${`api/groups/${encodeURIComponent(id)}`}>
      ${(data) => html`<${Details} id=${id} data=${data} />`}
    <//>
  `;
}

function Details({ id, data }) {
  const reasons = data.partitions.filter(({ verdict, reason }) => reason && verdict in TONES);
  return html`
    <${Reasons} rows=${reasons} />
    <${Keys} figures=${figures(data.group)} />
    <div class="cards">
      <${Card} title="Unread records" note="All partitions, over the last few minutes">
        <${Chart} series=${data.lag} what="Unread records" as=${format.number} />
      <//>
      <${Card} title="Partitions" note="The offsets that the group has committed, and how far they are from the end">
        <${Table}
          caption="Partitions"
          columns=${partitionColumns(data.members)}
          rows=${data.partitions}
          keyOf=${(row) => `${row.topic}-${row.partition}`}
          empty="The group has neither committed offsets nor assigned partitions."
        />
      <//>
      <${Card} title="Members" note=${data.group.protocol && `Assignment: ${data.group.protocol}`}>
        <${Table}
          caption="Members"
          columns=${MEMBER_COLUMNS}
          rows=${data.members}
          keyOf=${(member) => member.id}
          empty="The group has no members now, so nobody reads."
        />
      <//>
      <${Card} title="Events" aside=${html`<a href=${link(["events"], { group: id })}>ALL OF THIS GROUP</a>`}>
        <${EventList} events=${data.events} silent=${data.silent} empty="The brokers have reported no events of this group." />
      <//>
    </div>
  `;
}

/** Draws the server's explanations for the partitions that make no progress. */
function Reasons({ rows }) {
  if (!rows.length) return null;
  return html`<ul class="findings" aria-label="What holds it up">
    ${rows.slice(0, 3).map(
      (row) => html`<li class=${`card finding edge-${TONES[row.verdict]}`} key=${`${row.topic}-${row.partition}`}>
        <div class="head">
          <h2>${row.verdict === "falling behind" ? "Falling behind" : row.verdict === "stuck" ? "Stuck" : "Stopped"} at <bdi>${row.topic}-${row.partition}</bdi></h2>
          <${Verdict} verdict=${row.verdict} />
        </div>
        <p class="cause"><bdi>${row.reason}</bdi></p>
      </li>`,
    )}
    ${rows.length > 3 && html`<li class="note">${format.counted(rows.length - 3, "more partition")} below.</li>`}
  </ul>`;
}

function figures(group) {
  return [
    { value: html`<${Lag} row=${group} />`, what: "unread records", tone: TONES[group.verdict] },
    {
      value: html`<${Known} value=${group.seconds} as=${format.duration} />`,
      what: "age of the oldest unread record",
      about: group.catch_up == null ? "" : `caught up in ${format.duration(group.catch_up)} at this rate`,
    },
    { value: group.verdict, what: "verdict", about: "its worst partition", tone: TONES[group.verdict] },
    {
      value: html`<${Known} value=${group.members} unknown="Not looked at yet" />`,
      what: group.members === 1 ? "member" : "members",
      about: [group.state, group.coordinator != null && `coordinated by broker ${group.coordinator}`].filter(Boolean).join(", "),
    },
  ];
}

const BASES = {
  record: "From the time of the oldest unread record",
  watch: "From when the console saw the end pass this offset",
  bound: "At least this long: it was already unread when the console first looked",
};

function partitionColumns(members) {
  const names = new Map(members.map((member) => [member.id, member.instance_id || member.client_id]));
  return [
    {
      title: "Partition",
      cell: (row) => html`<${TopicLink} name=${row.topic} /> ${row.partition}
        ${row.reason && html`<div class="where"><bdi>${row.reason}</bdi></div>`}`,
    },
    { title: "Verdict", cell: (row) => html`<${Verdict} verdict=${row.verdict} />` },
    {
      title: "Member",
      isRoomy: true,
      cell: (row) =>
        row.member == null ? html`<${Mark}>none<//>` : html`<span title=${row.member}><${Name}>${names.get(row.member) ?? row.member}<//></span>`,
    },
    { title: "Committed", isNumeric: true, isRoomy: true, cell: (row) => html`<${Committed} row=${row} />` },
    { title: "End", isNumeric: true, isRoomy: true, cell: (row) => html`<${Known} value=${row.end} />` },
    { title: "Unread", isNumeric: true, cell: (row) => html`<${Lag} row=${row} />` },
    {
      title: "Waiting for",
      isNumeric: true,
      cell: (row) => html`<span title=${BASES[row.seconds_basis] ?? ""}>${row.seconds_basis === "bound" && "≥ "}<${Known} value=${row.seconds} as=${format.duration} /></span>`,
    },
    { title: "In", about: "Records appended per second", isNumeric: true, isRoomy: true, cell: (row) => html`<${Known} value=${row.rate_in} as=${format.rate} />` },
    { title: "Out", about: "Records read and committed per second", isNumeric: true, isRoomy: true, cell: (row) => html`<${Known} value=${row.rate_out} as=${format.rate} />` },
  ];
}

function Committed({ row }) {
  if (row.committed == null) return html`<${Known} value=${null} unknown="It has committed no offset here" />`;
  const href = link(["topics", row.topic, "messages"], { partition: row.partition, from: row.committed });
  return html`<a href=${href} title="Read the message at this offset">${format.number(row.committed)}</a>`;
}

const MEMBER_COLUMNS = [
  {
    title: "Member",
    cell: (member) => html`<${Name}>${member.instance_id || member.client_id}<//>${" "}
      ${member.is_slowest && html`<${Mark} tone="warning" title="It has the most unread records">slowest<//>`}
      <div class="where"><bdi>${member.id}</bdi></div>`,
  },
  { title: "Host", isRoomy: true, cell: (member) => html`<bdi>${member.host}</bdi>` },
  { title: "Partitions", isNumeric: true, cell: (member) => format.number(member.partitions) },
  { title: "Unread", isNumeric: true, cell: (member) => html`<${Known} value=${member.lag} />` },
];
