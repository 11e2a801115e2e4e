/** Draws a button for each change that a page offers, and requests previews and changes from the server. */

import { Trouble, get, retryNow } from "./api.js";
import { html, useEffect, useState } from "./html.js";
import { ActionDialog } from "./parts/action-dialog.js";
import { FORMS } from "./parts/action-forms.js";

const TIMEOUT_MS = 100000;
const NOTHING = { enabled: false, secret: "", names: [] };

/** The changes that the server allows; they stay the same as long as the server runs. */
let asked = null;

/** @returns {{enabled: boolean, secret: string, names: string[]}} `Actions` of shapes.py */
export function useActions() {
  const [state, setState] = useState(NOTHING);
  useEffect(() => {
    let isDrawn = true;
    asked ??= get("api/actions");
    asked.then(
      (found) => isDrawn && setState(found),
      () => {
        asked = null; // The next page repeats the request; until then, nothing can be changed.
      },
    );
    return () => {
      isDrawn = false;
    };
  }, []);
  return state;
}

/**
 * Sends one step of an action.
 * @param {string} name @param {"preview" | "apply"} step @param {object} body @param {string} secret
 */
async function send(name, step, body, secret) {
  let response;
  let answer;
  try {
    response = await fetch(`api/actions/${name}/${step}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Barnabas-Console": secret },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    answer = await response.json();
  } catch {
    const known = step === "apply" ? " It is not known whether the change was made." : "";
    throw new Trouble(`The server does not answer.${known}`, 0);
  }
  if (!response.ok) throw new Trouble(answer.error, response.status);
  return answer;
}

/**
 * Draws a button for each action, if the server lets the page change anything.
 * @param {{of: [name: string, given: object][]}} props each action, and the values with which its form starts
 */
export function Actions({ of }) {
  const { enabled, secret, names } = useActions();
  const [opened, setOpened] = useState(null);
  if (!enabled) return null;
  const [name, given] = opened ?? [];
  const close = (address) => {
    setOpened(null);
    if (address) location.hash = address;
  };
  return html`
    <div class="actions" role="group" aria-label="Changes">
      ${of
        .filter(([each]) => names.includes(each))
        .map(
          ([each, about]) => html`<button type="button" key=${each} class=${FORMS[each].isDangerous ? "dangerous" : undefined}
            onClick=${() => setOpened([each, about])}>${FORMS[each].button} …</button>`,
        )}
    </div>
    ${opened &&
    html`<${ActionDialog}
      key=${name}
      form=${FORMS[name]}
      given=${given}
      send=${(step, body) => send(name, step, body, secret)}
      onChanged=${retryNow}
      onClose=${close}
    />`}
  `;
}
