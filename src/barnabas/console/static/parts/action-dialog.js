/** Draws an action step by step: its form, the preview of what will change, and the result. */

import { html, useLayoutEffect, useRef, useState } from "../html.js";
import { Fields, startOf } from "./action-fields.js";
import { Table } from "./table.js";
import { Mark } from "./words.js";

/**
 * @param {{form: object, given: object, send: (step: string, body: object) => Promise<any>,
 *    onChanged: () => void, onClose: (address?: string) => void}} props
 */
export function ActionDialog({ form, given, send, onChanged, onClose }) {
  const dialog = useRef(null);
  const heading = useRef(null);
  const [values, setValues] = useState(() => startOf(form));
  const [state, setState] = useState({ step: "form", isBusy: false, error: "" });
  const address = useRef("");
  useLayoutEffect(() => dialog.current.showModal(), []);
  useLayoutEffect(() => {
    // Focus the first field of the form. In the other steps, focus the heading.
    const first = state.step === "form" && dialog.current.querySelector("input, textarea, select");
    (first || heading.current).focus();
  }, [state.step]);

  const work = async (step, body) => {
    setState((before) => ({ ...before, isBusy: true, error: "" }));
    try {
      return await send(step, body());
    } catch (error) {
      setState((before) => ({ ...before, isBusy: false, isSpent: step === "apply", error: error.message }));
      return null;
    }
  };
  const preview = async () => {
    const found = await work("preview", () => form.body(values, given));
    if (found) setState({ step: "preview", isBusy: false, error: "", preview: found });
  };
  const apply = async () => {
    const result = await work("apply", () => ({ token: state.preview.token }));
    if (!result) return;
    setState({ step: "result", isBusy: false, error: "", result });
    address.current = form.address?.(values, given) ?? "";
    onChanged();
  };
  const close = () => dialog.current.close();
  const onSubmit = (event) => {
    event.preventDefault();
    if (!state.isBusy) preview();
  };
  // A request in progress cannot be cancelled, so keep the dialog open until the result arrives.
  const onCancel = (event) => state.isBusy && event.preventDefault();
  const buttons = { state, close, preview, apply, back: () => setState({ step: "form", isBusy: false, error: "" }) };
  return html`<dialog
    ref=${dialog}
    class="action"
    aria-labelledby="action-title"
    onKeyDown=${keepFocus}
    onCancel=${onCancel}
    onClose=${() => onClose(address.current)}
  >
    <form onSubmit=${onSubmit}>
      <h2 id="action-title" tabindex="-1" ref=${heading}><bdi>${form.title(given)}</bdi></h2>
      ${state.step === "form" && html`<${Fields} fields=${form.fields} values=${values} onChange=${setValues} />`}
      ${state.step === "preview" && html`<${Preview} preview=${state.preview} />`}
      ${state.step === "result" && html`<${Sentences} sentences=${state.result.sentences} className="done" />`}
      ${state.error && html`<p class="alarm" role="alert"><bdi>${state.error}</bdi></p>`}
      <${Buttons} ...${buttons} isDangerous=${form.isDangerous} />
    </form>
  </dialog>`;
}

function Buttons({ state, close, preview, apply, back, isDangerous }) {
  const { step, isBusy, isSpent } = state;
  if (step === "result") {
    return html`<p class="buttons"><button type="button" class="main" onClick=${close}>Close</button></p>`;
  }
  const canApply = step === "preview" && state.preview.token && !isSpent;
  return html`<p class="buttons">
    <button type="button" disabled=${isBusy} onClick=${close}>Cancel</button>
    ${step === "preview" && html`<button type="button" disabled=${isBusy} onClick=${back}>Back</button>`}
    ${step === "form" && html`<button type="submit" class="main" disabled=${isBusy}>Preview</button>`}
    ${step === "preview" && isSpent && html`<button type="button" class="main" disabled=${isBusy} onClick=${preview}>Preview again</button>`}
    ${canApply && html`<button type="button" class=${isDangerous ? "main dangerous" : "main"} disabled=${isBusy} onClick=${apply}>Apply</button>`}
    <span class="where" role="status">${isBusy && "Asking the cluster …"}</span>
  </p>`;
}

function Preview({ preview }) {
  const { changes, sentences, warnings } = preview;
  return html`
    <p class="note">${changes.length ? "Nothing has been changed yet. This will change:" : "There is nothing to change."}</p>
    ${changes.length > 0 && html`<${Table} caption="What will change" columns=${COLUMNS} rows=${changes} keyOf=${({ what }) => what} />`}
    <${Sentences} sentences=${sentences} />
    <${Sentences} sentences=${warnings} className="warnings" />
  `;
}

function Sentences({ sentences, className = "" }) {
  if (!sentences.length) return null;
  return html`<ul class=${`plain ${className}`} role=${className === "done" ? "status" : undefined}>
    ${sentences.map((each) => html`<li key=${each}><bdi>${each}</bdi></li>`)}
  </ul>`;
}

const COLUMNS = [
  { title: "What", cell: ({ what }) => html`<bdi>${what}</bdi>` },
  { title: "Before", cell: ({ before }) => (before == null ? html`<${Mark}>not there<//>` : html`<code>${before}</code>`) },
  {
    title: "After",
    cell: ({ after, about }) => html`${after == null ? html`<${Mark} tone="bad">deleted<//>` : html`<code>${after}</code>`}
      ${about && html`<div class="where">${about}</div>`}`,
  },
];

const FOCUSABLE = "input:enabled, textarea:enabled, select:enabled, button:enabled";

/** Keeps the Tab key in the dialog; otherwise, it would move the focus to the browser's own buttons. */
function keepFocus(event) {
  if (event.key !== "Tab") return;
  const found = [...event.currentTarget.querySelectorAll(FOCUSABLE)];
  const at = found.indexOf(document.activeElement);
  const isLeaving = event.shiftKey ? at <= 0 : at === found.length - 1;
  if (!isLeaving || !found.length) return;
  event.preventDefault();
  found.at(event.shiftKey ? -1 : 0).focus();
}
