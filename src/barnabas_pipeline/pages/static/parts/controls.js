/** Draws what selects rows: the period, the comparison, and the filters as chips that can be removed. */

import { filtersOf, go, isSet, link, toggled, valueOf, without, withValues } from "../address.js";
import { html, useState } from "../../console/html.js";
import { PRESETS, bounds, isCurrent, moment, otherText, periodText, resolved } from "../periods.js";
import { MISSING } from "../words.js";
import { labelOf, useNames } from "../names.js";

const DAY_MS = 86_400_000;
const midnight = (at) => Math.floor(at / DAY_MS) * DAY_MS;
const WHOLE = ["period", "since", "until"];

/** Draws the period and the comparison. @param {{address: any, site: any}} props */
export function Periods({ address, site }) {
  const { view, pairs } = address;
  const chosen = valueOf(pairs, "period");
  const found = resolved(pairs, site);
  const open = (changes) => go(link(view, withValues(pairs, { before: "", ...changes })));
  const isAll = !periodText(found);
  const names = isCurrent(site) ? "current" : "past";
  const since = valueOf(found, "since").slice(0, 10);
  const end = moment(valueOf(found, "until"), true);
  const until = end == null ? "" : bounds(0, Math.ceil(end / DAY_MS) * DAY_MS).until;
  const setDate = (name) => (event) => {
    const dates = { since, until, [name]: event.target.value };
    if (dates.since && dates.until && dates.since > dates.until) dates[name === "since" ? "until" : "since"] = "";
    open({ ...dates, period: "" });
  };
  return html`<section class="periods" aria-label="Period">
    <div class="presets" role="group" aria-label="Periods">
      ${PRESETS.map(
        (each) => html`<button
          key=${each.name}
          type="button"
          aria-pressed=${chosen === each.name ? "true" : "false"}
          onClick=${() => open({ period: each.name, since: "", until: "" })}
        >
          ${each[names]}
        </button>`,
      )}
      <button
        type="button"
        aria-pressed=${isAll ? "true" : "false"}
        onClick=${() => open({ period: "", since: "", until: "", compare: "", compare_until: "" })}
      >
        All
      </button>
    </div>
    <div class="dates">
      <label>from <input type="date" value=${since} onChange=${setDate("since")} /></label>
      <label>to <input type="date" value=${until} onChange=${setDate("until")} /></label>
    </div>
    ${view !== "rows" && html`<${Comparison} ...${{ pairs, found, isAll, open, site }} />`}
  </section>`;
}

function Comparison({ pairs, found, isAll, open, site }) {
  const compare = valueOf(pairs, "compare");
  const [isOther, setIsOther] = useState(false);
  const shown = compare === "before" ? "before" : compare || isOther ? "other" : "";
  const choose = (event) => {
    const value = event.target.value;
    setIsOther(value === "other");
    if (value === "other") return open({ compare: "" });
    // Everything has no period before it, so the newest week is compared instead. A period without an end
    // ends with the data.
    const period = {};
    if (value === "before" && isAll) period.period = "7d";
    else if (value === "before" && site.ends_at != null) {
      const whole = bounds(midnight(site.begins_at), midnight(site.ends_at) + DAY_MS);
      for (const name of ["since", "until"]) if (!valueOf(found, name)) period[name] = whole[name];
    }
    return open({ compare: value, compare_until: "", ...period });
  };
  const setOther = (name) => (event) => open({ [name]: event.target.value });
  return html`<div class="dates">
    <label
      >compare with
      <select value=${shown} onChange=${choose}>
        <option value="">nothing</option>
        <option value="before">the period before</option>
        <option value="other">another period …</option>
      </select></label
    >
    ${shown === "other" &&
    html`<label
        >from
        <input type="date" aria-label="Compare from" value=${compare.slice(0, 10)} onChange=${setOther("compare")}
      /></label>
      <label
        >to
        <input
          type="date"
          aria-label="Compare to"
          value=${valueOf(pairs, "compare_until").slice(0, 10)}
          disabled=${!compare}
          onChange=${setOther("compare_until")}
      /></label>`}
    ${shown === "before" && !isAll && html`<span class="other">${otherText(found)}</span>`}
  </div>`;
}

/** Draws the active filters, each as a button that removes it. @param {{address: any, site: any}} props */
export function Chips({ address, site }) {
  useNames();
  const { view, pairs } = address;
  const found = resolved(pairs, site);
  const labels = new Map((site?.dimensions ?? []).map(({ name, label }) => [name, label]));
  const chips = [];
  const period = periodText(found);
  const preset = PRESETS.find(({ name }) => name === valueOf(pairs, "period"));
  if (period) {
    const value = preset ? preset[site && isCurrent(site) ? "current" : "past"] : period;
    chips.push({ label: "Period", value, exact: period, rest: without(pairs, WHOLE) });
  }
  const other = otherText(found);
  if (other && view !== "rows") chips.push({ label: "Compared with", value: other, rest: without(pairs, ["compare", "compare_until"]) });
  for (const [name, value] of filtersOf(pairs)) {
    const label = labels.get(name) ?? name;
    chips.push({ label, value: labelOf(name, value), rest: toggled(pairs, name, value) });
  }
  const sought = valueOf(pairs, "words");
  if (sought && view === "rows") chips.push({ label: "Words", value: sought, rest: without(pairs, ["words"]) });
  if (!chips.length) return null;
  const none = pairs.filter(([name]) => name === "step" || name === "within");
  return html`<ul class="chips" aria-label="Active filters">
    ${chips.map(
      ({ label, value, exact, rest }) => html`<li key=${`${label} ${value}`}>
        <button
          type="button"
          class="chip"
          title=${`${label}: ${exact ?? value}`}
          aria-label=${`Remove ${label}: ${value}`}
          onClick=${() => leave(link(view, without(rest, ["before"])))}
        >
          <span>${label}</span> <bdi>${value}</bdi> <i aria-hidden="true">×</i>
        </button>
      </li>`,
    )}
    <li><button type="button" class="clear" onClick=${() => leave(link(view, none))}>Clear all</button></li>
  </ul>`;
}

/** Opens an address. The button that was pressed disappears, so the keyboard's focus moves to its neighbour. */
function leave(hash) {
  go(hash);
  setTimeout(() => {
    if (document.activeElement !== document.body) return;
    const next = document.querySelector(".chips button") ?? document.getElementById("content");
    next?.focus({ preventScroll: true });
  }, 50);
}

const MOST_SUGGESTIONS = 300;

/**
 * Draws a field that adds a filter without a click on a row. "/" focuses it where there is no search for words.
 * @param {{address: any, site: any, cards: any[]}} props
 */
export function AddFilter({ address, site, cards }) {
  const { view, pairs } = address;
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const chosen = name || site.dimensions[0]?.name;
  if (!chosen) return null;
  const keys = cards.filter(({ dimension }) => dimension === chosen).flatMap(({ rows }) => rows.map(({ key }) => key));
  const suggestions = [...new Set(keys.filter((key) => key != null && key !== MISSING))];
  const add = (event) => {
    event.preventDefault();
    const wanted = value.trim();
    if (wanted && !isSet(pairs, chosen, wanted)) go(link(view, toggled(pairs, chosen, wanted)));
    setValue("");
  };
  return html`<form class="filters add" onSubmit=${add}>
    <label
      >only
      <select aria-label="Property" value=${chosen} onChange=${(event) => setName(event.target.value)}>
        ${site.dimensions.map((each) => html`<option key=${each.name} value=${each.name}>${each.label}</option>`)}
      </select></label
    >
    <input
      data-search-after
      type="search"
      list="values"
      aria-label="Value of the property"
      placeholder="a value, or click a row"
      title="Press / to come here"
      maxlength="2000"
      autocomplete="off"
      spellcheck=${false}
      value=${value}
      onInput=${(event) => setValue(event.target.value)}
    />
    <datalist id="values">
      ${suggestions.slice(0, MOST_SUGGESTIONS).map((each) => html`<option key=${each} value=${each} />`)}
    </datalist>
    <button type="submit" aria-label="Add filter">Add</button>
  </form>`;
}
