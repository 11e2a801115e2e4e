/** Answers: which clients does the cluster know, what do they read, and which limits apply to them? */

import * as format from "../format.js";
import { html } from "../html.js";
import { EventList } from "../parts/event-list.js";
import { Polled } from "../parts/state.js";
import { Paging, Search, Table } from "../parts/table.js";
import { Card, GroupLink, Heading, Known, Mark, Name, Time } from "../parts/words.js";
import { query, setFilters } from "../router.js";

const PAGE_SIZE = 100;

/** @param {{filters: Record<string, string>}} props */
export function ClientsPage({ filters }) {
  const { search = "", sort = "client", descending = "", page = "" } = filters;
  return html`
    <${ClientsHead} at="clients" />
    <form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
      <${Search}
        value=${search}
        label="Search clients, hosts and groups"
        onInput=${(text) => setFilters({ search: text, page: "" })}
      />
    </form>
    <${Polled} path=${`api/clients${query({ search, sort, descending, page })}`}>
      ${(data) => html`<${Sections} data=${data} sort=${sort} isDescending=${Boolean(descending)} search=${search} />`}
    <//>
  `;
}

/** Draws the header that both pages about clients share. @param {{at: "clients" | "producers"}} props */
export function ClientsHead({ at }) {
  const current = (name) => (at === name ? "page" : undefined);
  return html`
    <${Heading} over="Cluster" title=${at === "clients" ? "Clients" : "Producers"} note=${NOTES[at]}>
      <nav class="actions" aria-label="Kinds of clients">
        <a class="button" href="#/clients" aria-current=${current("clients")}>Members of groups</a>
        <a class="button" href="#/clients/producers" aria-current=${current("producers")}>Producers</a>
      </nav>
    <//>
    <details class="limits">
      <summary>What is missing here, and why</summary>
      <p class="note">
        Kafka's protocol has no list of connections. These clients are therefore in neither list: consumers without
        a group, producers without idempotence, producers that have not written for so long that the brokers have
        forgotten them (<code>producer.id.expiration.ms</code>, by default a day), and tools that only manage the
        cluster. The protocol also reports neither the client ID and host of a producer nor the user of a member.
      </p>
    </details>
  `;
}

const NOTES = {
  clients: "Each member of a group, as the group's coordinator reports it.",
  producers: "Each producer with an ID, as the leaders of partitions and the transaction coordinators report it.",
};

function Sections({ data, sort, isDescending, search }) {
  return html`
    ${data.error && html`<p class="stale" role="status">${data.error}</p>`}
    ${data.groups_known < data.groups && html`<p class="stale" role="status">
      The members of ${format.number(data.groups_known)} of ${format.counted(data.groups, "group")} are known. Groups
      are queried in turns, 100 at a time.
    </p>`}
    <div class="cards">
      <${Card} title="Members of groups">
        <${Table}
          caption="Members of groups"
          columns=${columns(data)}
          rows=${data.clients}
          keyOf=${(row) => `${row.group} ${row.member}`}
          sort=${sort}
          isDescending=${isDescending}
          empty=${search ? `No client, host or group has “${search}” in its name.` : "No group has members now."}
        />
        <${Paging} page=${data.page} matching=${data.matching} size=${PAGE_SIZE} noun="member" />
      <//>
      <${Card} title="Quotas" note=${QUOTAS}>
        ${data.quotas_error && html`<p class="stale" role="status">${data.quotas_error}</p>`}
        <${Table}
          caption="Quotas"
          columns=${QUOTA_COLUMNS}
          rows=${data.quotas}
          keyOf=${(row) => [row.user, row.client_id, row.ip, row.key].join(" ")}
          empty=${emptyQuotas(data)}
        />
        ${data.quotas_left_out > 0 && html`<p class="note after">
          ${format.counted(data.quotas_left_out, "more quota")}, not shown. <code>barnabas configs describe --quotas</code> shows all.
        </p>`}
      <//>
      <${Card} title="Events" note="Clients that were throttled, denied or refused, or failed to authenticate; the latest first">
        <${EventList} events=${data.events} silent=${data.silent} empty="The brokers have reported no events of clients." />
      <//>
    </div>
  `;
}

const QUOTAS = `A quota of a user takes precedence over one of a client ID. Nothing reports the user of a member, so the
  table above shows only quotas of client IDs and addresses.`;

function emptyQuotas({ quotas_error: error, quotas_at: at }) {
  if (error) return "Not known.";
  return at == null ? "Not asked yet." : "No quotas are set: no client is throttled.";
}

function columns(data) {
  const hasUserQuotas = data.quotas.some(({ user }) => user != null);
  return [
    {
      title: "Client",
      sort: "client",
      cell: (row) => html`<${Name}>${row.client_id || "(empty client ID)"}<//>
        <div class="where"><bdi>${row.host}</bdi></div>
        <div class="where roomy-cell"><bdi>${row.instance_id ?? row.member}</bdi></div>`,
    },
    { title: "Group", sort: "group", cell: (row) => html`<${GroupLink} id=${row.group} />` },
    { title: "Partitions", sort: "partitions", isNumeric: true, isRoomy: true, cell: (row) => html`<${Parts} row=${row} />` },
    { title: "Unread", about: "Records that it has not read yet, in its partitions", isNumeric: true, cell: (row) => html`<${Known} value=${row.lag} unknown="Not counted yet" />` },
    { title: "Quotas", about: "The quotas of its client ID and its host", isRoomy: true, cell: (row) => html`<${QuotasOf} row=${row} hasUserQuotas=${hasUserQuotas} error=${data.quotas_error} at=${data.quotas_at} />` },
    { title: "Last event", about: "The last event of its client ID or its host", cell: (row) => html`<${LastEvent} row=${row} />` },
  ];
}

/** Draws the number of partitions, and the names of some of them. @param {{row: object}} props */
export function Parts({ row }) {
  const more = row.partitions - row.some.length;
  return html`${format.number(row.partitions)}
    ${row.some.length > 0 && html`<div class="where parts"><bdi>${row.some.join(", ")}</bdi>${more > 0 && ` and ${format.number(more)} more`}</div>`}`;
}

function QuotasOf({ row, hasUserQuotas, error, at }) {
  if (error || at == null) return html`<${Known} value=${null} unknown=${error || "Not asked yet"} />`;
  const unless = hasUserQuotas ? html`<div class="where">unless its user has one</div>` : null;
  if (!row.quotas.length) return html`none ${unless}`;
  return html`${row.quotas.map((quota) => html`<div key=${quota.key}>${quota.key} <b>${limit(quota)}</b></div>`)} ${unless}`;
}

function LastEvent({ row }) {
  if (row.events == null) return html`<${Known} value=${null} unknown="No broker keeps events that can be read here" />`;
  if (!row.events) return "none";
  const { at, kind, text, is_by_host: isByHost } = row.last_event;
  return html`<${Mark} tone="warning" title=${text}>${kind}<//> <${Time} at=${at} />
    <div class="where">${isByHost ? "names only its host" : ""} ${row.events > 1 ? `${format.number(row.events)} events` : ""}</div>`;
}

const UNITS = { request_percentage: "%", controller_mutation_rate: " partitions/s", connection_creation_rate: " connections/s" };

function limit({ key, value }) {
  return key.endsWith("_byte_rate") ? `${format.bytes(value)}/s` : `${value}${UNITS[key] ?? ""}`;
}

const PLURALS = { user: "users", "client ID": "client IDs", address: "addresses" };
const named = ([kind, name]) => html`<span key=${kind}>${name === "" ? `all other ${PLURALS[kind]}` : html`${kind} <bdi>${name}</bdi>`} </span>`;

const QUOTA_COLUMNS = [
  {
    title: "Applies to",
    cell: (row) =>
      [["user", row.user], ["client ID", row.client_id], ["address", row.ip]].filter(([, name]) => name != null).map(named),
  },
  { title: "Quota", cell: (row) => row.key },
  { title: "Limit", isNumeric: true, cell: limit },
];
