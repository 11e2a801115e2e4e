/** Draws a form that asks whether a user may do something, and the answer with its reason. */

import { html, useState } from "../html.js";
import { query, setFilters } from "../router.js";
import { Polled } from "./state.js";
import { Card, Mark } from "./words.js";

const NOUNS = {
  Topic: "Topic",
  Group: "Group",
  Cluster: "Cluster",
  TransactionalId: "Transactional id",
  DelegationToken: "Delegation token",
  User: "User",
};
const VERDICTS = new Map([
  [true, ["good", "allowed"]],
  [false, ["warning", "denied"]],
  [null, ["warning", "denied by default"]],
]);

/**
 * Draws a form whose values are part of the page's address, so users can share a link to the result.
 * @param {{filters: Record<string, string>, operations: Record<string, string[]>}} props
 */
export function Explain({ filters, operations }) {
  const { who = "", may = "", type = "", on = "", host = "" } = filters;
  const asked = { who, may, type: type || "Topic", on, host };
  const [typed, setTyped] = useState(asked);
  const { [typed.type]: choices = [] } = operations;
  const set = (name) => (event) => setTyped({ ...typed, [name]: event.target.value });
  const isCluster = typed.type === "Cluster";
  const ask = (event) => {
    event.preventDefault();
    const operation = choices.includes(typed.may) ? typed.may : choices[0];
    setFilters({ ...typed, who: typed.who.trim(), may: operation, on: isCluster ? "" : typed.on, host: typed.host.trim() });
  };
  return html`<${Card} title="May a user do something?" note="The rules that decide, and what would change it.">
    <form class="filters explain" onSubmit=${ask}>
      <label>May <input aria-label="User" placeholder="User:alice" required maxlength="249" ...${PLAIN} value=${typed.who} onInput=${set("who")} /></label>
      <${Choice} label="Operation" values=${choices} value=${typed.may} onChange=${set("may")} />
      <${Choice} label="Type of resource" values=${Object.keys(operations)} value=${typed.type} words=${NOUNS} onChange=${set("type")} />
      ${!isCluster &&
      html`<input aria-label="Name of the resource" placeholder="orders" required maxlength="249" ...${PLAIN} value=${typed.on} onInput=${set("on")} />`}
      <label>from host <input class="narrow" aria-label="Host" placeholder="any" maxlength="60" ...${PLAIN} value=${typed.host} onInput=${set("host")} /></label>
      <button type="submit">Explain</button>
    </form>
    ${who && html`<${Answer} asked=${asked} />`}
  <//>`;
}

const PLAIN = { spellcheck: false, autocomplete: "off" };

function Choice({ label, values, value, words = {}, onChange }) {
  return html`<select aria-label=${label} value=${value} onChange=${onChange}>
    ${values.map((each) => html`<option key=${each} value=${each} selected=${each === value}>${words[each] ?? each}</option>`)}
  </select>`;
}

function Answer({ asked }) {
  const { who, may, type, on, host } = asked;
  const path = `api/security/explain${query({ principal: who, operation: may, type, name: on, host })}`;
  return html`<${Polled} key=${path} path=${path}>
    ${(data) => {
      if (data.error) return html`<p role="status">The rules cannot be read: ${data.error}.</p>`;
      const [tone, word] = VERDICTS.get(data.allowed);
      return html`<div class="answer" role="status">
        <p><${Mark} tone=${tone}>${word}<//> <bdi>${data.lines[0]}</bdi></p>
        ${data.lines.slice(1).map((line, index) => html`<${Line} key=${index} line=${line} />`)}
      </div>`;
    }}
  <//>`;
}

/** Draws a sentence, or a command, which is indented. */
function Line({ line }) {
  if (line.startsWith("  ")) return html`<code class="command">${line.trim()}</code>`;
  return html`<p><bdi>${line}</bdi></p>`;
}
