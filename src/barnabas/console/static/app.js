/** Draws the frame around all pages, and chooses the page for the address. */

import { useActions } from "./actions.js";
import { retryNow, usePoll } from "./api.js";
import * as format from "./format.js";
import { html, render, useEffect, useState } from "./html.js";
import { choose } from "./pages.js";
import { useAddress } from "./router.js";
import { SignIn, SignOut, currentSession } from "./sign-in.js";

const LINKS = [
  ["", "Overview"],
  ["events", "Events"],
  ["topics", "Topics"],
  ["groups", "Groups"],
  ["transactions", "Transactions"],
  ["brokers", "Brokers"],
  ["clients", "Clients"],
  ["pipelines", "Pipelines"],
  ["security", "Security"],
];

function App({ session }) {
  const { path, filters } = useAddress();
  const poll = usePoll("api/overview");
  const { enabled } = useActions();
  const { page, props, title, key } = choose(path);
  const cluster = poll.data?.title ?? "";
  useEffect(() => {
    document.title = [title, cluster, "Barnabas"].filter(Boolean).join(" · ");
  }, [title, cluster]);
  useEffect(() => {
    scrollTo(0, 0);
  }, [key]);
  return html`
    <a class="skip" href="#content" onClick=${skip}>Skip to the content</a>
    <div class="bar">
      <a class="brand" href="#/"><${Pulse} poll=${poll} />Barnabas <span><bdi>${cluster}</bdi></span></a>
      <nav aria-label="Pages of the console">
        ${LINKS.map(
          ([name, label]) => html`<a
            key=${name}
            href=${`#/${name}`}
            aria-current=${(path[0] ?? "") === name ? "page" : undefined}
            >${label}</a
          >`,
        )}
      </nav>
      ${session.user && html`<${SignOut} user=${session.user} />`}
    </div>
    <main id="content" tabindex="-1">
      <${Banner} poll=${poll} />
      ${poll.data?.lacks && html`<p class="stale" role="status">${poll.data.lacks}</p>`}
      <${page} key=${key} ...${props} filters=${filters} overview=${poll.data} />
      <footer>
        ${poll.data?.looked_at
          ? html`The cluster was last asked at ${format.clock(poll.data.looked_at)}. `
          : ""}${enabled ? "This page can change the cluster; each change is previewed first." : "This page only reads."}
        ${" "}<span class="keyboard"><kbd>/</kbd> goes to the search.</span>
      </footer>
    </main>
  `;
}

function skip(event) {
  event.preventDefault(); // "#content" is not the address of a page
  document.getElementById("content").focus();
}

/** Draws a dot that shows the state of the cluster. */
function Pulse({ poll }) {
  const findings = poll.data?.findings ?? [];
  const worst = ["critical", "warning"].find((each) => findings.some(({ severity }) => severity === each));
  const state = !poll.data || poll.error || poll.data.error ? "unknown" : (worst ?? "well");
  const words = { unknown: "state not known", critical: "critical", warning: "needs attention", well: "well" };
  return html`<i class=${`pulse pulse-${state}`} role="img" aria-label=${`Cluster: ${words[state]}.`} title=${words[state]}></i>`;
}

/** Shows that the figures are old, why, and when the page will try again. */
function Banner({ poll }) {
  const { error, data, at, nextAt } = poll;
  const said = error?.message ?? (data?.error ? `The last refresh failed: ${data.error}.` : "");
  const seconds = useSecondsUntil(error ? nextAt : 0);
  if (!said) return null;
  const goodAt = error ? at : data.looked_at;
  return html`<div class="banner" role="status">
    <p>
      ${said}${" "}
      ${goodAt ? `The figures are from ${format.clock(goodAt)}.` : "There are no figures yet."}
    </p>
    ${error && html`<p class="retry">
      <span aria-hidden="true">${seconds > 0 ? `Tries again in ${seconds} s.` : "Trying again …"}</span>
      <button type="button" onClick=${retryNow}>Try now</button>
    </p>`}
  </div>`;
}

function useSecondsUntil(at) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!at) return undefined;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [at]);
  return Math.max(0, Math.ceil((at - now) / 1000));
}

const SEARCH_WAIT_MS = 5_000;

/** Makes "/" focus the search field of the page or, if the page has none, open the search of topics. */
function onKey(event) {
  const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (document.querySelector("dialog[open]")) return;
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  if (focusSearch()) return;
  location.hash = "#/topics";
  // The search field appears only after the page's data has arrived.
  const observer = new MutationObserver(() => focusSearch() && observer.disconnect());
  observer.observe(document.getElementById("app"), { childList: true, subtree: true });
  setTimeout(() => observer.disconnect(), SEARCH_WAIT_MS);
}

function focusSearch() {
  const search = document.querySelector("[data-search]");
  search?.focus();
  return search !== null;
}

addEventListener("keydown", onKey);
const session = await currentSession();
const isOpen = !session.required || session.user;
if (session.required && isOpen) addEventListener("barnabas-signed-out", () => location.reload(), { once: true });
render(isOpen ? html`<${App} session=${session} />` : html`<${SignIn} ended=${session.ended} />`, document.getElementById("app"));
