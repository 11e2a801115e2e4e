/** Draws the states other than current data: waiting, a failure, and out-of-date figures. */

import * as format from "../format.js";
import { html } from "../html.js";
import { usePoll } from "../api.js";

/**
 * Polls `path` and draws the data with `children`. Shows a message until the first data arrives.
 * @param {{path: string, children: (data: any, isLoading: boolean) => any}} props
 */
export function Polled({ path, children }) {
  const { data, error, at, isLoading } = usePoll(path);
  if (!data) return error ? html`<${Failure} error=${error} />` : html`<${Waiting} />`;
  const isGone = error?.status === 404;
  return html`
    ${error && error.status > 0 && html`<${Stale} error=${error} at=${isGone ? 0 : at} />`}
    <div aria-busy=${isLoading ? "true" : "false"}>${children(data, isLoading)}</div>
  `;
}

export function Waiting() {
  return html`<p class="empty waiting" role="status">Asking the cluster …</p>`;
}

/** Explains why there is nothing to show. */
export function Failure({ error }) {
  if (error.status === 0) return html`<p class="empty" role="status">Waiting for the server.</p>`;
  const what = error.status === 404 ? "There is no such page" : "This could not be read";
  return html`<div class="card" role="alert">
    <h2>${what}</h2>
    <p>${error.message}</p>
    <p class="note"><a href="#/">Go to the overview</a></p>
  </div>`;
}

function Stale({ error, at }) {
  const age = at ? `These figures are from ${format.clock(at)}. ` : "";
  return html`<p class="stale" role="status">${age}${error.message}</p>`;
}
