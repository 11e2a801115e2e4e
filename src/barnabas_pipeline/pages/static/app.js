/** Draws the frame around the overview, the rows and the live view, and chooses one of them for the address. */

import { link, useAddress, valueOf, without } from "./address.js";
import { useSite } from "./api.js";
import { html, render, useEffect } from "../console/html.js";
import { Chips, Periods } from "./parts/controls.js";
import { Now } from "./parts/now.js";
import { Overview, Trouble } from "./parts/overview.js";
import { Rows } from "./parts/rows.js";
import { SavedViews } from "./parts/saved.js";
import { resolved } from "./periods.js";
import * as words from "./words.js";

const KINDS = { events: "Events of pages and apps", access: "Access log", logs: "System logs" };
const VIEWS = { "": ["Overview", Overview], rows: ["Rows", Rows], now: ["Now", Now] };

function App() {
  const address = useAddress();
  const { site, error, look } = useSite();
  const view = address.view in VIEWS ? address.view : "";
  const [title, View] = VIEWS[view];
  const pairs = address.pairs;
  const name = site ? site.title || KINDS[site.kind] : "…";
  useEffect(() => {
    document.title = [title, name].join(" · ");
  }, [title, name]);
  useEffect(() => scrollTo(0, 0), [view]);
  // A period such as "7 days" depends on what the tables contain.
  const isKnown = site != null || !valueOf(pairs, "period");
  const parameters = resolved(pairs, site);
  const kept = without(pairs, ["before"]);
  return html`
    <a class="skip" href="#content" onClick=${skip}>Skip to the content</a>
    <div class="bar">
      <a class="brand" href="#/"><span class="site"><bdi>${name}</bdi></span></a>
      <nav aria-label="Views">
        ${Object.entries(VIEWS)
          .filter(([each]) => each !== "now" || site?.has_now)
          .map(
            ([each, [label]]) => html`<a
              key=${each}
              href=${link(each, each === "rows" ? kept : without(kept, ["words"]))}
              aria-current=${each === view ? "page" : undefined}
              >${label}</a
            >`,
          )}
      </nav>
      <${SavedViews} />
      ${view !== "now" && html`<${Chips} address=${{ view, pairs }} site=${site} />`}
    </div>
    <main id="content" tabindex="-1">
      <header>
        <div class="over">${site && site.title ? KINDS[site.kind] : ""}</div>
        <h1><bdi>${name}</bdi></h1>
        <p class="note">${site && about(site)}</p>
      </header>
      ${error && html`<${Trouble} error=${error} retry=${look} />`}
      ${view !== "now" && site && html`<${Periods} address=${{ view, pairs }} site=${site} />`}
      ${isKnown && html`<${View} key=${view} address=${{ view, pairs }} site=${site} parameters=${parameters} />`}
      <footer>
        All times are in UTC. A click on a row filters everything; another click on it shows all again.${" "}
        <span class="keyboard"><kbd>/</kbd> goes to the search.</span>
      </footer>
    </main>
  `;
}

function about(site) {
  if (site.begins_at == null || site.ends_at == null) return "Nothing has arrived yet. This page shows new data as it comes.";
  return `From ${words.moment(site.begins_at).slice(0, -3)} to ${words.moment(site.ends_at).slice(0, -3)} (UTC). New data appears by itself.`;
}

function skip(event) {
  event.preventDefault(); // "#content" is not the address of a view
  document.getElementById("content").focus();
}

/** Makes "/" focus the search, and Escape leave it. */
function onKey(event) {
  const field = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key === "Escape" && field?.matches("[data-search], [data-search-after], .find")) field.blur();
  if (event.key !== "/" || field || event.ctrlKey || event.metaKey || event.altKey) return;
  const search = document.querySelector("[data-search]") ?? document.querySelector("[data-search-after]");
  if (!search) return;
  event.preventDefault();
  search.focus();
}

addEventListener("keydown", onKey);
render(html`<${App} />`, document.getElementById("app"));
