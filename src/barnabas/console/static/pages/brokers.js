/** Answers: which brokers are there, and is the work distributed evenly? */

import { Actions } from "../actions.js";
import * as format from "../format.js";
import { html } from "../html.js";
import { Free } from "../parts/disks.js";
import { Polled } from "../parts/state.js";
import { Table } from "../parts/table.js";
import { BrokerLink, Heading, Known, Mark } from "../parts/words.js";

const CHANGES = [
  ["elect-leaders", { of: "all topics" }],
  ["alter-configs", { of: "all brokers" }],
];

export function BrokersPage() {
  return html`
    <${Heading} over="Cluster" title="Brokers"><${Actions} of=${CHANGES} /><//>
    <${Polled} path="api/brokers">
      ${(data) => html`<div class="card">
        <${Table} caption="Brokers" columns=${COLUMNS} rows=${data.brokers} keyOf=${(broker) => broker.id}
          empty="No broker is known." />
      </div>`}
    <//>
  `;
}

const COLUMNS = [
  {
    title: "Broker",
    cell: (broker) => html`<${BrokerLink} id=${broker.id} /> ${broker.is_controller && html`<${Mark}>controller<//>`}
      <div class="where">${broker.host}:${broker.port}</div>`,
  },
  { title: "Rack", isRoomy: true, cell: (broker) => html`<${Known} value=${broker.rack} as=${String} unknown="No rack is set" />` },
  { title: "Leads", about: "Partitions that it leads", isNumeric: true, cell: (broker) => format.number(broker.leaders) },
  { title: "Replicas", isNumeric: true, cell: (broker) => format.number(broker.replicas) },
  {
    title: "Out of sync",
    about: "Replicas on this broker that are not in the ISR",
    isNumeric: true,
    cell: (broker) =>
      broker.out_of_sync ? html`<${Mark} tone="warning">${format.number(broker.out_of_sync)}<//>` : "0",
  },
  { title: "Size", isNumeric: true, isRoomy: true, cell: (broker) => html`<${Known} value=${broker.size} as=${format.bytes} />` },
  {
    title: "Disks",
    isRoomy: true,
    cell: (broker) =>
      broker.directories.length
        ? broker.directories.map((directory) => html`<${Free} key=${directory.path} directory=${directory} />`)
        : html`<${Known} value=${null} unknown="The broker does not report it" />`,
  },
];
