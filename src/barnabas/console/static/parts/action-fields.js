/** Draws the fields of an action's form. */

import { html } from "../html.js";

/** Returns the initial values of a form. @param {{fields: object[], start?: object}} form */
export function startOf(form) {
  return { ...Object.fromEntries(form.fields.map(({ name }) => [name, ""])), ...form.start };
}

/** @param {{fields: object[], values: object, onChange: (values: object) => void}} props */
export function Fields({ fields, values, onChange }) {
  const shown = fields.filter(({ isShown }) => !isShown || isShown(values));
  if (!shown.length) return html`<p class="note">It has no settings. The preview shows what it would change.</p>`;
  return shown.map((field) => html`<${Row} key=${field.name} field=${field} values=${values} onChange=${onChange} />`);
}

function Row({ field, values, onChange }) {
  const { name, label, help, kind, form, choices } = field;
  const set = (changed) => (event) => onChange({ ...values, [changed]: event.target.value });
  const id = `action-${name}`;
  const helpId = help && `${id}-help`;
  return html`<div class="field">
    <div class="field-head">
      <label for=${id}>${label}</label>
      ${kind === "content" && html`<${Choice} label=${`${label} is given as`} choices=${choices} value=${values[form]} onChange=${set(form)} />`}
    </div>
    ${!(kind === "content" && values[form] === "null") &&
    html`<${Control} field=${field} id=${id} helpId=${helpId} value=${values[name]} onInput=${set(name)} />`}
    ${help && html`<p class="where" id=${helpId}>${help}</p>`}
  </div>`;
}

function Control({ field, id, helpId, value, onInput }) {
  const { kind, isNeeded, choices } = field;
  const shared = { id, required: isNeeded, "aria-describedby": helpId, spellcheck: false, autocomplete: "off", value, onInput };
  if (kind === "choice") return html`<${Choice} id=${id} choices=${choices} value=${value} onChange=${onInput} />`;
  if (kind === "lines" || kind === "content") return html`<textarea rows="3" ...${shared}></textarea>`;
  return html`<input type="text" inputmode=${kind === "number" ? "numeric" : undefined} ...${shared} />`;
}

function Choice({ id, label, choices, value, onChange }) {
  return html`<select id=${id} aria-label=${label} value=${value} onChange=${onChange}>
    ${choices.map(([each, words]) => html`<option key=${each} value=${each} selected=${each === value}>${words}</option>`)}
  </select>`;
}
