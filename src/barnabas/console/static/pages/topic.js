/** Answers: where are the partitions of a topic, are their replicas in sync, and who reads the topic? */

import { Actions } from "../actions.js";
import * as format from "../format.js";
import { html } from "../html.js";
import { Chart } from "../parts/chart.js";
import { Configs } from "../parts/configs.js";
import { EventList } from "../parts/event-list.js";
import { Replicas } from "../parts/replicas.js";
import { Polled } from "../parts/state.js";
import { Table } from "../parts/table.js";
import { BrokerLink, Card, GroupLink, Heading, Keys, Known, Mark, Name } from "../parts/words.js";
import { link } from "../router.js";

/** @param {{name: string}} props */
export function TopicPage({ name }) {
  return html`
    <${Heading} over=${html`<a href="#/topics">Topics</a>`} title=${html`<${Name}>${name}<//>`}>
      <p class="actions">
        <a class="button" href=${link(["topics", name, "messages"])}>Read messages</a>
        <a class="button" href=${link(["events"], { topic: name })}>Events</a>
      </p>
      <${Actions} of=${changes(name)} />
    <//>
    <${Polled} path=${`api/topics/${encodeURIComponent(name)}`}>
      ${(data) => html`<${Details} name=${name} data=${data} />`}
    <//>
  `;
}

const changes = (topic) => [
  ["produce-record", { topic }],
  ["add-partitions", { topic }],
  ["alter-configs", { of: "topic", topic }],
  ["elect-leaders", { of: "topic", topic }],
  ["reassign-partitions", { topic }],
  ["cancel-reassignment", { topic }],
  ["clear-throttles", { topic }],
  ["delete-records", { topic }],
  ["delete-topic", { topic }],
];

function Details({ name, data }) {
  return html`
    <${Keys} figures=${figures(data.topic)} />
    <div class="cards">
      ${data.moves?.length > 0 &&
      html`<${Card} title="Reassignment" note="The new replicas copy the log; when all of them are in sync, the old ones are removed">
        <${Table} caption="Partitions that are being reassigned" columns=${MOVES} rows=${data.moves} keyOf=${(row) => row.partition} />
      <//>`}
      <${Card} title="Partitions" note=${ABOUT}>
        ${data.moves == null && html`<p class="note">${NO_MOVES}</p>`}
        <${Table} caption="Partitions" columns=${columns(name)} rows=${data.partitions} keyOf=${(row) => row.partition} />
      <//>
      <${Card} title="Records in" width="wide" note="Records appended per second, over the last minutes">
        <${Chart} series=${data.records_in} what="Records appended per second" as=${format.rate} />
      <//>
      <${Card} title="Consumer groups" width="slim" note="Groups that read the topic or have committed offsets in it">
        ${data.groups.length
          ? html`<ul class="plain">${data.groups.map((id) => html`<li key=${id}><${GroupLink} id=${id} /></li>`)}</ul>`
          : html`<div class="empty">No group reads this topic. Try one:
              <code class="command">barnabas consume ${name} --group my-group</code></div>`}
      <//>
      <${Card} title="Events" width="wide" aside=${html`<a href=${link(["events"], { topic: name })}>ALL OF THIS TOPIC</a>`}>
        <${EventList} events=${data.events} silent=${data.silent} empty="The brokers have reported no events of this topic." />
      <//>
      <${Card} title="Configs" width="slim"><${Configs} configs=${data.configs} /><//>
    </div>
  `;
}

const NO_MOVES = `It is not known whether partitions are being reassigned: the controller has not answered in time, or
  the console's user may not Describe the cluster.`;
const ABOUT = `In the order of the assignment: the first replica is the preferred leader. A bar shows how much of the
  leader's log the replica has. HW, the high watermark, is where consumers may read to; LEO is the end of the log.`;

function figures(topic) {
  const health = topic.leaderless
    ? [`${format.number(topic.leaderless)} without a leader`, "bad"]
    : topic.under_replicated
      ? [`${format.number(topic.under_replicated)} under-replicated`, "warning"]
      : ["all replicas in sync", ""];
  return [
    {
      value: format.number(topic.partitions),
      what: topic.partitions === 1 ? "partition" : "partitions",
      about: health[0],
      tone: health[1],
    },
    { value: html`<${Known} value=${topic.records} />`, what: "records at most", about: "offsets from the starts to the ends" },
    {
      value: html`<${Known} value=${topic.size} as=${format.bytes} />`,
      what: "on disk",
      about: `replication factor ${topic.replication_factor}`,
    },
    { value: html`<${Known} value=${topic.records_in} as=${format.rate} unknown="Not measured yet" />`, what: "records in" },
  ];
}

const brokersText = (ids) => (ids.length ? ids.join(", ") : "none");

const MOVES = [
  { title: "Partition", cell: (row) => row.partition },
  { title: "Adding", cell: (row) => brokersText(row.adding) },
  { title: "Removing", cell: (row) => brokersText(row.removing) },
  { title: "New replicas", about: "In the order of the assignment: the first is the preferred leader", cell: (row) => brokersText(row.replicas) },
];

function columns(name) {
  const leaderOf = (row) => row.replicas.find((replica) => replica.is_leader);
  return [
    {
      title: "Partition",
      cell: (row) => html`<a href=${link(["topics", name, "messages"], { partition: row.partition })} title="Read its messages">${row.partition}</a>`,
    },
    {
      title: "Leader",
      cell: (row) =>
        row.leader == null ? html`<${Mark} tone="bad">none<//>` : html`<${BrokerLink} id=${row.leader}>${row.leader}<//>`,
    },
    { title: "Replicas", about: "The bar shows how much of the leader's log it has", cell: (row) => html`<${Replicas} partition=${row} />` },
    {
      title: "Epoch",
      about: "The leader epoch: it grows with each election",
      isNumeric: true,
      isRoomy: true,
      cell: (row) => html`<${Known} value=${row.leader_epoch} />`,
    },
    { title: "Start", isNumeric: true, isRoomy: true, cell: (row) => html`<${Known} value=${row.start} />` },
    {
      title: "HW",
      about: "The high watermark: consumers may read to here",
      isNumeric: true,
      cell: (row) => html`<${Known} value=${row.high_watermark} />`,
    },
    {
      title: "LEO",
      about: "The log end offset of the leader",
      isNumeric: true,
      isRoomy: true,
      cell: (row) => html`<${Known} value=${leaderOf(row)?.end} />`,
    },
    { title: "Size", isNumeric: true, isRoomy: true, cell: (row) => html`<${Known} value=${row.size} as=${format.bytes} />` },
    {
      title: "In",
      about: "Records appended per second",
      isNumeric: true,
      isRoomy: true,
      cell: (row) => html`<${Known} value=${row.records_in} as=${format.rate} unknown="Not measured yet" />`,
    },
  ];
}
