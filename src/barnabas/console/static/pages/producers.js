/** Answers: which producers write, where do they write, and do any of them have an open transaction? */

import * as format from "../format.js";
import { html } from "../html.js";
import { Polled } from "../parts/state.js";
import { Paging, Search, Table } from "../parts/table.js";
import { Known, Mark, Name, Time } from "../parts/words.js";
import { query, setFilters } from "../router.js";
import { ClientsHead, Parts } from "./clients.js";

const PAGE_SIZE = 100;

/** @param {{filters: Record<string, string>}} props */
export function ProducersPage({ filters }) {
  const { search = "", sort = "written", descending = filters.sort ? "" : "1", page = "" } = filters;
  return html`
    <${ClientsHead} at="producers" />
    <form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
      <${Search}
        value=${search}
        label="Search IDs and partitions"
        onInput=${(text) => setFilters({ search: text, page: "" })}
      />
    </form>
    <${Polled} path=${`api/clients/producers${query({ search, sort, descending, page })}`}>
      ${(data) => html`
        <${Limits} data=${data} />
        <div class="card">
          <${Table}
            caption="Producers"
            columns=${COLUMNS}
            rows=${data.producers}
            keyOf=${(row) => row.id}
            sort=${sort}
            isDescending=${Boolean(descending)}
            empty=${empty(data, search)}
          />
          <${Paging} page=${data.page} matching=${data.matching} size=${PAGE_SIZE} noun="producer" />
        </div>
      `}
    <//>
  `;
}

function empty(data, search) {
  if (search) return `No producer has “${search}” in its ID or in the partitions that are shown.`;
  if (data.looked_at == null) return data.error ? "Not known." : "Asking the leaders …";
  return "No producer with an ID has written anything lately.";
}

/** Explains what is still missing from the list. */
function Limits({ data }) {
  const sentences = [];
  if (data.looked_at != null && data.partitions_known < data.partitions) {
    sentences.push(
      `The producers of ${format.number(data.partitions_known)} of ${format.counted(data.partitions, "partition")} are known. ` +
        "Partitions are asked in turns, 500 at a time, and at most the first 20,000.",
    );
  }
  if (data.denied) {
    sentences.push(`The producers of ${format.counted(data.denied, "partition")} are not shown: this needs Read on the topic.`);
  }
  if (data.left_out) {
    sentences.push(`${format.counted(data.left_out, "producer")} of single partitions are left out: at most 20,000 are kept.`);
  }
  if (data.error) sentences.push(data.error);
  return sentences.map((text) => html`<p class="stale" role="status" key=${text}>${text}</p>`);
}

function Open({ row }) {
  if (!row.open.length && row.started == null) return html`${row.state ?? html`<${Known} value=${null} unknown="It has no transactional ID" />`}`;
  return html`<${Mark} tone=${row.hangs ? "bad" : "calm"} title=${row.hangs ? "It has been open for longer than its timeout" : undefined}>
      ${row.hangs ? "hangs" : "open"}<//>${" "}
    ${row.started != null && html`since <${Time} at=${row.started} />`}
    ${row.open.slice(0, 3).map((part) => html`<div class="where" key=${part.partition}><bdi>${part.partition}</bdi>, from offset ${format.number(part.start)}</div>`)}
    ${row.open.length > 3 && html`<div class="where">and in ${format.counted(row.open.length - 3, "more partition")}</div>`}`;
}

const COLUMNS = [
  {
    title: "Producer",
    about: "The producer's ID and its epoch",
    sort: "id",
    cell: (row) => html`${row.id}<div class="where">epoch ${row.epoch ?? format.DASH}</div>`,
  },
  {
    title: "Name",
    about: "Its transactional ID",
    sort: "transactional_id",
    cell: (row) =>
      row.transactional_id == null
        ? html`<${Known} value=${null} unknown="No coordinator knows one for it" />`
        : html`<${Name}>${row.transactional_id || "(empty)"}<//>`,
  },
  {
    title: "Last wrote",
    about: "The latest time in its batches, which is usually set by the producer",
    sort: "written",
    isNumeric: true,
    cell: (row) => (row.written_at == null ? html`<${Known} value=${null} unknown="No leader knows of a batch" />` : html`<${Time} at=${row.written_at} />`),
  },
  { title: "Transaction", cell: (row) => html`<${Open} row=${row} />` },
  { title: "Partitions", sort: "partitions", isNumeric: true, isRoomy: true, cell: (row) => html`<${Parts} row=${row} />` },
];
