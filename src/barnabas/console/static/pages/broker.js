/** Answers: what is a broker doing, how full are its disks, and what has happened to it? */

import { Actions } from "../actions.js";
import * as format from "../format.js";
import { html } from "../html.js";
import { Configs } from "../parts/configs.js";
import { Free } from "../parts/disks.js";
import { EventList } from "../parts/event-list.js";
import { Polled } from "../parts/state.js";
import { Table } from "../parts/table.js";
import { Card, Heading, Keys, Known } from "../parts/words.js";
import { link } from "../router.js";

/** @param {{id: string}} props */
export function BrokerPage({ id }) {
  return html`
    <${Heading} over=${html`<a href="#/brokers">Brokers</a>`} title=${`Broker ${id}`}>
      <${Actions} of=${[["alter-configs", { of: "broker", broker: Number(id) }]]} />
    <//>
    <${Polled} path=${`api/brokers/${encodeURIComponent(id)}`}>
      ${(data) => html`<${Details} id=${id} data=${data} />`}
    <//>
  `;
}

function Details({ id, data }) {
  const { broker } = data;
  return html`
    <p class="note">
      ${broker.host}:${broker.port}${broker.rack ? `, rack ${broker.rack}` : ""}${broker.is_controller ? ", the controller" : ""}
    </p>
    <${Keys} figures=${figures(broker)} />
    <div class="cards">
      <${Card} title="Directories">
        <${Table} caption="Directories" columns=${COLUMNS} rows=${broker.directories} keyOf=${(directory) => directory.path}
          empty="The broker does not report its directories." />
      <//>
      <${Card} title="Events" width="wide" aside=${html`<a href=${link(["events"], { broker: id })}>ALL OF THIS BROKER</a>`}>
        <${EventList} events=${data.events} silent=${data.silent} empty="There are no events about this broker." />
      <//>
      <${Card} title="Configs" width="slim"><${Configs} configs=${data.configs} /><//>
    </div>
  `;
}

function figures(broker) {
  const { leaders, replicas, out_of_sync: outOfSync, size } = broker;
  return [
    { value: format.number(leaders), what: leaders === 1 ? "partition led" : "partitions led" },
    { value: format.number(replicas), what: replicas === 1 ? "replica" : "replicas" },
    { value: format.number(outOfSync), what: "out of sync", tone: outOfSync ? "warning" : "" },
    { value: html`<${Known} value=${size} as=${format.bytes} />`, what: "on disk" },
  ];
}

const COLUMNS = [
  { title: "Path", cell: (directory) => html`<code>${directory.path}</code>` },
  { title: "Logs", isNumeric: true, cell: (directory) => format.bytes(directory.size) },
  { title: "Room", cell: (directory) => html`<${Free} directory=${directory} />` },
];
