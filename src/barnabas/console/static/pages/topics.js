/** Answers: which topics are there, how large, busy and healthy are they? */

import { Actions } from "../actions.js";
import * as format from "../format.js";
import { html } from "../html.js";
import { Polled } from "../parts/state.js";
import { Paging, Search, Table } from "../parts/table.js";
import { Heading, Known, Mark, TopicLink } from "../parts/words.js";
import { query, setFilters } from "../router.js";

const PAGE_SIZE = 100;

/** @param {{filters: Record<string, string>}} props */
export function TopicsPage({ filters }) {
  const { search = "", sort = "name", descending = "", internal = "", page = "" } = filters;
  const asked = { search, sort, descending, internal, page };
  return html`
    <${Heading} over="Cluster" title="Topics"><${Actions} of=${[["create-topic", {}]]} /><//>
    <form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
      <${Search} value=${search} label="Search topics" onInput=${(text) => setFilters({ search: text, page: "" })} />
      <label>
        <input
          type="checkbox"
          checked=${Boolean(internal)}
          onChange=${(event) => setFilters({ internal: event.target.checked ? 1 : "", page: "" })}
        />
        Internal topics too
      </label>
    </form>
    <${Polled} path=${`api/topics${query(asked)}`}>
      ${(data) => html`<div class="card">
        <${Table}
          caption="Topics"
          columns=${COLUMNS}
          rows=${data.topics}
          keyOf=${(topic) => topic.name}
          sort=${sort}
          isDescending=${Boolean(descending)}
          empty=${search ? `No topic has “${search}” in its name.` : EMPTY}
        />
        <${Paging} page=${data.page} matching=${data.matching} size=${PAGE_SIZE} noun="topic" />
      </div>`}
    <//>
  `;
}

const EMPTY = html`There are no topics yet. Create the first one:
  <code class="command">barnabas topics create orders --partitions 3</code>`;

/** Draws whether all replicas of a topic are in sync. @param {{topic: object}} props */
export function Health({ topic }) {
  if (topic.leaderless) {
    return html`<${Mark} tone="bad">${format.number(topic.leaderless)} without a leader<//>`;
  }
  if (topic.under_replicated) {
    return html`<${Mark} tone="warning">${format.number(topic.under_replicated)} under-replicated<//>`;
  }
  return html`<${Mark} tone="good">in sync<//>`;
}

const COLUMNS = [
  {
    title: "Topic",
    sort: "name",
    cell: (topic) => html`<${TopicLink} name=${topic.name} /> ${topic.is_internal && html`<${Mark}>internal<//>`}`,
  },
  { title: "Replicas", cell: (topic) => html`<${Health} topic=${topic} />` },
  { title: "Partitions", sort: "partitions", isNumeric: true, cell: (topic) => format.number(topic.partitions) },
  {
    title: "Copies",
    about: "The replication factor",
    isNumeric: true,
    isRoomy: true,
    cell: (topic) => format.number(topic.replication_factor),
  },
  {
    title: "Records",
    about: "At most this many, counted as the offsets between the starts and the ends of the partitions",
    sort: "records",
    isNumeric: true,
    isRoomy: true,
    cell: (topic) => html`<${Known} value=${topic.records} />`,
  },
  {
    title: "Size",
    sort: "size",
    isNumeric: true,
    isRoomy: true,
    cell: (topic) => html`<${Known} value=${topic.size} as=${format.bytes} />`,
  },
  {
    title: "Records in",
    sort: "rate",
    isNumeric: true,
    cell: (topic) => html`<${Known} value=${topic.records_in} as=${format.rate} unknown="Not measured yet" />`,
  },
];
