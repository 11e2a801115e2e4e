/** Lets people sign in and out, if the console asks for it. */

import { get } from "./api.js";
import { html, useState } from "./html.js";
import { Card, Name } from "./parts/words.js";

const TIMEOUT_MS = 30000;

/** @returns {Promise<{required: boolean, user: string, ended: string}>} `Session` of shapes.py */
export async function currentSession() {
  try {
    return await get("api/session");
  } catch {
    // The page itself reports that the server does not respond.
    return { required: false, user: "", ended: "" };
  }
}

/** Sends a step, and returns an error message or "". */
async function send(step, body) {
  try {
    const response = await fetch(`api/session/${step}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const answer = await response.json();
    return response.ok ? "" : answer.error;
  } catch {
    return "The server does not answer.";
  }
}

/** @param {{ended: string}} props the reason why the previous session ended, or "" */
export function SignIn({ ended }) {
  const [typed, setTyped] = useState({ user: "", password: "" });
  const [said, setSaid] = useState("");
  const [isBusy, setIsBusy] = useState(false);
  const set = (name) => (event) => setTyped({ ...typed, [name]: event.target.value });
  const submit = async (event) => {
    event.preventDefault();
    setIsBusy(true);
    const problem = await send("sign-in", typed);
    // Reload the page to discard the data of the previous user.
    if (!problem) return location.reload();
    setIsBusy(false);
    setSaid(problem);
    setTyped({ ...typed, password: "" });
  };
  return html`<main id="content" class="sign-in">
    <h1>Sign in</h1>
    ${ended && html`<p class="stale" role="status">${ended} Sign in to return to the page that you had open.</p>`}
    <${Card} title="Barnabas console" note="With your user and password of the cluster. You see and do what its ACLs allow you.">
      <form onSubmit=${submit}>
        <p><label for="user">User</label> <input id="user" autocomplete="username" required maxlength="256" spellcheck=${false} value=${typed.user} onInput=${set("user")} /></p>
        <p><label for="password">Password</label> <input id="password" type="password" autocomplete="current-password" required maxlength="256" value=${typed.password} onInput=${set("password")} /></p>
        ${said && html`<p role="alert">${said}</p>`}
        <p><button type="submit" disabled=${isBusy}>Sign in</button></p>
      </form>
    <//>
  </main>`;
}

/** @param {{user: string}} props */
export function SignOut({ user }) {
  const signOut = async () => {
    await send("sign-out", {});
    location.reload();
  };
  return html`<span class="signed-in"><${Name}>${user}<//> <button type="button" class="small" onClick=${signOut}>Sign out</button></span>`;
}
