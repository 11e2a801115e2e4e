/** Answers: which consumer groups are behind, by how much, and are they making progress? */

import * as format from "../format.js";
import { html } from "../html.js";
import { Polled } from "../parts/state.js";
import { Paging, Search, Table } from "../parts/table.js";
import { BrokerLink, GroupLink, Heading, Known, Verdict } from "../parts/words.js";
import { query, setFilters } from "../router.js";

const PAGE_SIZE = 100;

/** @param {{filters: Record<string, string>}} props */
export function GroupsPage({ filters }) {
  const { search = "", sort = "id", descending = "", page = "" } = filters;
  return html`
    <${Heading} over="Cluster" title="Consumer groups" />
    <form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
      <${Search} value=${search} label="Search groups" onInput=${(text) => setFilters({ search: text, page: "" })} />
    </form>
    <${Polled} path=${`api/groups${query({ search, sort, descending, page })}`}>
      ${(data) => html`<div class="card">
        <${Table}
          caption="Consumer groups"
          columns=${COLUMNS}
          rows=${data.groups}
          keyOf=${(group) => group.id}
          sort=${sort}
          isDescending=${Boolean(descending)}
          empty=${search ? `No group has “${search}” in its name.` : EMPTY}
        />
        <${Paging} page=${data.page} matching=${data.matching} size=${PAGE_SIZE} noun="group" />
      </div>`}
    <//>
  `;
}

const EMPTY = html`There are no consumer groups yet. Let one read a topic:
  <code class="command">barnabas consume orders --group my-group</code>`;

/** Draws the number of unread records. @param {{row: object}} props a row with `lag` and `lag_is_exact` */
export function Lag({ row }) {
  if (row.lag == null) return html`<${Known} value=${null} unknown="Not counted yet" />`;
  if (row.lag_is_exact) return format.number(row.lag);
  return html`<span title="At most this many, because markers and gaps could not all be told apart">≤ ${format.number(row.lag)}</span>`;
}

/** Draws the age of the figures of a group. @param {{of: object}} props a row with `looked_at` */
export function Age({ of: row }) {
  if (row.looked_at == null) return html`<${Known} value=${null} unknown="Not looked at yet" />`;
  const seconds = Math.max(0, (Date.now() - row.looked_at) / 1000);
  return html`<span title=${format.exact(row.looked_at)}>${format.duration(Math.round(seconds))} ago</span>`;
}

const COLUMNS = [
  { title: "Group", sort: "id", cell: (group) => html`<${GroupLink} id=${group.id} />` },
  { title: "Verdict", sort: "verdict", cell: (group) => html`<${Verdict} verdict=${group.verdict} />` },
  { title: "Unread", about: "Records that it has not read yet", sort: "lag", isNumeric: true, cell: (group) => html`<${Lag} row=${group} />` },
  {
    title: "Waiting for",
    about: "How long the oldest unread record has waited",
    sort: "seconds",
    isNumeric: true,
    cell: (group) => html`<${Known} value=${group.seconds} as=${format.duration} />`,
  },
  {
    title: "Caught up in",
    about: "At the present rate",
    isNumeric: true,
    isRoomy: true,
    cell: (group) => html`<${Known} value=${group.catch_up} as=${format.duration} unknown="Never at the present rate, or not known" />`,
  },
  {
    title: "As of",
    about: "When these figures were read. If there are more than 100 groups, they are looked at in turns",
    isNumeric: true,
    cell: (group) => html`<${Age} of=${group} />`,
  },
  { title: "State", isRoomy: true, cell: (group) => group.state },
  {
    title: "Members",
    isNumeric: true,
    isRoomy: true,
    cell: (group) => html`<${Known} value=${group.members} unknown="Not looked at yet" />`,
  },
  {
    title: "Coordinator",
    isNumeric: true,
    isRoomy: true,
    cell: (group) =>
      group.coordinator == null ? html`<${Known} value=${null} />` : html`<${BrokerLink} id=${group.coordinator}>${group.coordinator}<//>`,
  },
];
