/** Answers: which transactions are open, and does any of them hang? */

import * as format from "../format.js";
import { html } from "../html.js";
import { Polled } from "../parts/state.js";
import { Table } from "../parts/table.js";
import { BrokerLink, Heading, Known, Mark, Name, Time } from "../parts/words.js";

export function TransactionsPage() {
  return html`
    <${Heading} over="Cluster" title="Transactions" note="The transactions of each producer that the coordinators know." />
    <${Polled} path="api/transactions">
      ${(data) => html`<div class="card">
        <${Table}
          caption="Transactions"
          columns=${COLUMNS}
          rows=${data.transactions}
          keyOf=${(row) => `${row.coordinator} ${row.id}`}
          empty="No producer has used transactions yet. A producer uses them if it has a transactional.id."
        />
      </div>`}
    <//>
  `;
}

function partitionsOf(row) {
  if (!row.partitions.length) return html`<${Known} value=${null} unknown="No partitions now" />`;
  const shown = row.partitions.slice(0, 5).join(", ");
  const more = row.partitions.length - 5;
  return html`<bdi title=${row.partitions.join(", ")}>${shown}</bdi>${more > 0 ? ` and ${format.number(more)} more` : ""}`;
}

const COLUMNS = [
  { title: "Transactional ID", cell: (row) => html`<${Name}>${row.id}<//>` },
  {
    title: "State",
    cell: (row) => html`${row.state} ${row.hangs && html`<${Mark} tone="bad" title="It has been open for longer than its timeout">hangs<//>`}`,
  },
  { title: "Started", cell: (row) => html`<${Time} at=${row.started} />` },
  {
    title: "Timeout",
    isNumeric: true,
    isRoomy: true,
    cell: (row) => html`<${Known} value=${row.timeout == null ? null : row.timeout / 1000} as=${format.duration} />`,
  },
  { title: "Partitions", isRoomy: true, cell: partitionsOf },
  { title: "Producer", about: "The producer's ID and its epoch", isRoomy: true, cell: (row) => `${row.producer_id}, epoch ${row.producer_epoch ?? format.DASH}` },
  { title: "Coordinator", isNumeric: true, isRoomy: true, cell: (row) => html`<${BrokerLink} id=${row.coordinator}>${row.coordinator}<//>` },
];
