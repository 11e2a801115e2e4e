/** Answers: who may do what, why may they do it, and which users are there? */

import { html } from "../html.js";
import { Explain } from "../parts/explain.js";
import { Polled } from "../parts/state.js";
import { Paging, Search, Table } from "../parts/table.js";
import { Card, Heading, Mark, Name } from "../parts/words.js";
import { query, setFilters } from "../router.js";

const PAGE_SIZE = 100;

/** @param {{filters: Record<string, string>}} props */
export function SecurityPage({ filters }) {
  const { search = "", sort = "principal", descending = "", page = "" } = filters;
  return html`
    <${Heading} over="Cluster" title="Security" />
    <${Polled} path=${`api/security${query({ search, sort, descending, page })}`}>
      ${(data) => html`
        ${data.error && html`<p class="stale" role="status">${data.error}</p>`}
        <${Explain} filters=${filters} operations=${data.operations} />
        <form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
          <${Search} value=${search} label="Search users and resources" onInput=${(text) => setFilters({ search: text, page: "" })} />
        </form>
        <div class="cards">
          <${Card} title="Access control" note="Who may do what. A rule that denies access takes precedence over a rule that allows it.">
            <${Table}
              caption="Rules of access control"
              columns=${sort === "resource" ? BY_RESOURCE : BY_PRINCIPAL}
              rows=${data.acls}
              keyOf=${(rule) => JSON.stringify(Object.values(rule))}
              sort=${sort}
              isDescending=${Boolean(descending)}
              empty=${emptyRules(data, search)}
            />
            ${data.matching > 0 && html`<${Paging} page=${data.page} matching=${data.matching} size=${PAGE_SIZE} noun="rule" />`}
          <//>
          <${Card} title="Users" note="With SCRAM credentials. Others may come from certificates, tokens or files.">
            <${Table}
              caption="Users"
              columns=${USER_COLUMNS}
              rows=${data.users}
              keyOf=${(user) => user.name}
              empty=${emptyUsers(data, search)}
            />
            ${data.users_matching > data.users.length &&
            html`<p class="note after">The first ${data.users.length} of ${data.users_matching} users. Search for others.</p>`}
          <//>
        </div>
      `}
    <//>
  `;
}

function emptyRules({ error, page }, search) {
  if (error.includes("rules: ")) return "Not known.";
  if (page > 0) return "There is no such page of rules.";
  return search ? `No rule has “${search}” in its user or resource.` : "There are no rules.";
}

function emptyUsers({ error }, search) {
  if (error.includes("users: ")) return "Not known.";
  return search ? `No user with SCRAM credentials has “${search}” in the name.` : "No user has SCRAM credentials.";
}

const PRINCIPAL = {
  title: "Principal",
  about: "Sort by principal",
  sort: "principal",
  cell: (rule) => html`<${Name}>${rule.principal}<//>`,
};
const RESOURCE = {
  title: "Resource",
  about: "Sort by resource",
  sort: "resource",
  cell: (rule) => html`${rule.resource_type} <${Name}>${rule.resource}<//>${rule.pattern_type === "Prefixed" ? "…" : ""}`,
};
const PERMISSION = {
  title: "Permission",
  cell: (rule) => html`<${Mark} tone=${rule.permission === "deny" ? "warning" : "good"}>${rule.permission}<//>`,
};
const OPERATION = { title: "Operation", cell: (rule) => rule.operation };
const ROOMY = [
  { title: "Pattern", isRoomy: true, cell: (rule) => rule.pattern_type },
  { title: "Host", isRoomy: true, cell: (rule) => html`<${Name}>${rule.host}<//>` },
];
const BY_PRINCIPAL = [PRINCIPAL, PERMISSION, OPERATION, RESOURCE, ...ROOMY];
const BY_RESOURCE = [RESOURCE, PERMISSION, OPERATION, PRINCIPAL, ...ROOMY];

const USER_COLUMNS = [
  { title: "User", cell: (user) => html`<${Name}>${user.name}<//>` },
  { title: "Mechanisms", cell: (user) => user.mechanisms.join(", ") },
];
