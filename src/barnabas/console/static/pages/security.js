/** Answers: who may do what, and which users are there? */

import { html } from "../html.js";
import { Polled } from "../parts/state.js";
import { Table } from "../parts/table.js";
import { Card, Heading, Mark, Name } from "../parts/words.js";

export function SecurityPage() {
  return html`
    <${Heading} over="Cluster" title="Security" />
    <${Polled} path="api/security">
      ${(data) => html`
        ${data.error && html`<p class="stale" role="status">${data.error}</p>`}
        <div class="cards">
          <${Card} title="Access control" note="Who may do what. A rule that denies wins over one that allows.">
            <${Table}
              caption="Rules of access control"
              columns=${RULE_COLUMNS}
              rows=${data.acls}
              keyOf=${(rule) => Object.values(rule).join(" ")}
              empty=${data.error ? "Not known." : "There are no rules."}
            />
          <//>
          <${Card} title="Users" note="With SCRAM credentials. Others may come from certificates, tokens or files.">
            <${Table}
              caption="Users"
              columns=${USER_COLUMNS}
              rows=${data.users}
              keyOf=${(user) => user.name}
              empty=${data.error ? "Not known." : "No user has SCRAM credentials."}
            />
          <//>
        </div>
      `}
    <//>
  `;
}

const RULE_COLUMNS = [
  { title: "Principal", cell: (rule) => html`<${Name}>${rule.principal}<//>` },
  {
    title: "Permission",
    cell: (rule) => html`<${Mark} tone=${rule.permission === "deny" ? "warning" : "good"}>${rule.permission}<//>`,
  },
  { title: "Operation", cell: (rule) => rule.operation },
  {
    title: "Resource",
    cell: (rule) => html`${rule.resource_type} <${Name}>${rule.resource}<//>${rule.pattern_type === "prefixed" ? "*" : ""}`,
  },
  { title: "Pattern", isRoomy: true, cell: (rule) => rule.pattern_type },
  { title: "Host", isRoomy: true, cell: (rule) => rule.host },
];

const USER_COLUMNS = [
  { title: "User", cell: (user) => html`<${Name}>${user.name}<//>` },
  { title: "Mechanisms", cell: (user) => user.mechanisms.join(", ") },
];
