/** Draws the configs of a topic or a broker: first those that have been set, and the others on demand. */

import { html } from "../html.js";
import { Table } from "./table.js";
import { Mark } from "./words.js";

/** @param {{configs: object[] | null}} props rows such as `ConfigRow` of shapes.py */
export function Configs({ configs }) {
  if (!configs) return html`<div class="empty">Not known: no broker has answered in time, or the console's user lacks the permission DescribeConfigs on it.</div>`;
  const set = configs.filter((config) => !config.is_default);
  const rest = configs.filter((config) => config.is_default);
  return html`
    <${Table} caption="Configs that are set" columns=${COLUMNS} rows=${set} keyOf=${(config) => config.name}
      empty=${configs.length ? "All configs have their defaults." : "There are none."} />
    ${rest.length > 0 && html`<details>
      <summary>${rest.length} with their defaults</summary>
      <${Table} caption="Configs with their defaults" columns=${COLUMNS} rows=${rest} keyOf=${(config) => config.name} />
    </details>`}
  `;
}

const COLUMNS = [
  { title: "Config", cell: (config) => html`<code>${config.name}</code>` },
  {
    title: "Value",
    cell: (config) =>
      config.value == null ? html`<${Mark} title="The broker does not show it">hidden<//>` : html`<code>${config.value || "(empty)"}</code>`,
  },
  { title: "Source", isRoomy: true, cell: (config) => config.source },
];
