/** Answers: what is in a topic? It reads without a group, so it changes nobody's offsets. */

import { usePoll, useStream } from "../api.js";
import * as format from "../format.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { MessageList } from "../parts/message-list.js";
import { Failure, Waiting } from "../parts/state.js";
import { Search } from "../parts/table.js";
import { Heading, Name } from "../parts/words.js";
import { link, query, setFilters } from "../router.js";

const LIMIT = 50;
const MOST_SHOWN = 300;
/** The messages of a page do not change, so they are requested again only by `Read again`. */
const NEVER_MS = 2 ** 31 - 1;
const TYPED_MS = 400;

/** @param {{name: string, filters: Record<string, string>}} props */
export function MessagesPage({ name, filters }) {
  const { partition = "", from = "latest", at = "", search = "", order = "last", follow = "", offsets = "" } = filters;
  const base = `api/topics/${encodeURIComponent(name)}`;
  const { data: topic } = usePoll(base, 15000);
  const partitions = (topic?.partitions ?? []).map((each) => each.partition);
  return html`
    <${Heading}
      over=${html`<a href="#/topics">Topics</a> / <a href=${link(["topics", name])}><${Name}>${name}<//></a>`}
      title="Messages"
      note="Reading here changes no group's offsets."
    />
    <${Controls} ...${{ partition, from, at, search, order, follow, offsets, partitions }} />
    ${follow
      ? html`<${Live} key=${`${partition} ${search}`} name=${name} base=${base} asked=${{ partition, search }} order=${order} />`
      : html`<${Range} name=${name} base=${base} asked=${{ partition, from, at, search, offsets }} order=${order} />`}
  `;
}

function Controls({ partition, from, at, search, order, follow, offsets, partitions }) {
  const [typed, setTyped] = useTyped(search, (text) => setFilters({ search: text }));
  const where = /^\d+$/.test(from) ? "offset" : from;
  const shown = partition && !partitions.includes(Number(partition)) ? [...partitions, partition] : partitions;
  const chooseWhere = (value) => {
    if (value === "offset") setFilters({ from: "0", at: "", offsets: "", partition: partition || partitions[0] || "0" });
    else setFilters({ from: value, offsets: "", at: value === "time" ? Date.now() - 3600000 : "" });
  };
  // The offsets in the address refer to the previously selected partitions, so remove them.
  const choosePartition = (value) => setFilters(offsets ? { partition: value, from: "", offsets: "" } : { partition: value });
  return html`<form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
    <select aria-label="Partition" value=${partition} onChange=${(event) => choosePartition(event.target.value)}>
      <option value="" disabled=${where === "offset"}>All partitions</option>
      ${shown.map((each) => html`<option key=${each} value=${String(each)}>Partition ${each}</option>`)}
    </select>
    ${!follow &&
    html`<select aria-label="Where to start" value=${where} onChange=${(event) => chooseWhere(event.target.value)}>
        <option value="latest">The latest</option>
        <option value="earliest">From the start</option>
        <option value="offset">From an offset</option>
        <option value="time">From a time</option>
        ${offsets && html`<option value=${from}>${from === "before" ? "Older ones" : "Newer ones"}</option>`}
      </select>
      ${where === "offset" && html`<${OffsetField} value=${from} />`}
      ${where === "time" && html`<${TimeField} value=${at} />`}`}
    <${Search} value=${typed} label="Search keys, values and headers" onInput=${setTyped} />
    <select aria-label="Order" value=${order} onChange=${(event) => setFilters({ order: event.target.value })}>
      <option value="last">Newest last</option>
      <option value="first">Newest first</option>
    </select>
    <button type="button" aria-pressed=${follow ? "true" : "false"} onClick=${() => setFilters({ follow: follow ? "" : 1 })}>
      Follow live
    </button>
  </form>`;
}

/** Returns the typed text, and calls `onSettled` only after a pause, because a search reads many records. */
function useTyped(value, onSettled) {
  const [typed, setTyped] = useState(value);
  const timer = useRef(0);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const change = (text) => {
    setTyped(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => onSettled(text), TYPED_MS);
  };
  return [typed, change];
}

function OffsetField({ value }) {
  const [typed, setTyped] = useTyped(value, (text) => /^\d{1,19}$/.test(text) && setFilters({ from: text }));
  return html`<input
    class="narrow"
    aria-label="Offset"
    inputmode="numeric"
    value=${typed}
    onInput=${(event) => setTyped(event.target.value.replace(/[\s,]/g, ""))}
  />`;
}

function TimeField({ value }) {
  const date = new Date(Number(value));
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60000);
  const shown = Number.isNaN(local.getTime()) ? "" : local.toISOString().slice(0, 19);
  const change = (text) => {
    const at = new Date(text).getTime();
    if (!Number.isNaN(at)) setFilters({ at });
  };
  return html`<input type="datetime-local" step="1" aria-label="Time" value=${shown} onChange=${(event) => change(event.target.value)} />`;
}

function Range({ name, base, asked, order }) {
  const [turn, setTurn] = useState(0);
  const path = `${base}/messages${query({ ...asked, limit: LIMIT })}`;
  // `turn` is not sent to the server; changing the key makes the component repeat the request.
  return html`<${Answer} key=${turn} ...${{ name, asked, order, path }} onAgain=${() => setTurn(turn + 1)} />`;
}

function Answer({ name, path, asked, order, onAgain }) {
  const { data, error, isLoading } = usePoll(path, NEVER_MS);
  if (error) return html`<${Failure} error=${error} />`;
  if (!data) return html`<${Waiting} />`;
  const messages = order === "first" ? [...data.messages].reverse() : data.messages;
  return html`<div class="card" aria-busy=${isLoading ? "true" : "false"}>
    <p class="note">
      ${format.counted(data.messages.length, "message")}${asked.search ? ` of ${format.counted(data.scanned, "record")} that were read` : ""}.
      ${!data.is_complete && " The search stopped at its limit before the end: read on below."}
    </p>
    <${MessageList} topic=${name} messages=${messages} empty=${asked.search ? "Nothing that was read contains this text." : html`<${Nothing} name=${name} />`} />
    <${Onward} data=${data} asked=${asked} onAgain=${onAgain} />
  </div>`;
}

function Nothing({ name }) {
  return html`There are no messages here. Write one:
    <code class="command">echo hello | barnabas produce ${name}</code>`;
}

/** Draws links to older and newer messages. For all partitions together, a link contains an offset for each. */
function Onward({ data, asked, onAgain }) {
  const { partition } = asked;
  const goTo = (changes) => setFilters({ at: "", offsets: "", ...changes });
  const first = Math.min(...data.messages.map(({ offset }) => offset));
  let hasOlder = Object.keys(data.previous).length > 0;
  let older = { from: "before", offsets: listed(data.previous) };
  let newer = { from: "after", offsets: listed(data.next) };
  if (partition !== "") {
    hasOlder = first > 0 && Number.isFinite(first);
    older = { from: String(Math.max(0, first - LIMIT)) };
    newer = { from: String(data.next[partition]) };
  }
  const hasNext = Object.keys(data.next).length > 0;
  return html`<nav class="paging" aria-label="More messages">
    <button type="button" disabled=${!hasOlder} onClick=${() => goTo(older)}>Older</button>
    <button type="button" onClick=${onAgain}>Read again</button>
    <button type="button" disabled=${!hasNext} onClick=${() => goTo(newer)}>Newer</button>
  </nav>`;
}

/** Returns the offsets of partitions 0, 1, ... as the server reads them: "12.7..3". */
function listed(offsets) {
  const count = Math.max(-1, ...Object.keys(offsets).map(Number)) + 1;
  return Array.from({ length: count }, (_, partition) => offsets[partition] ?? "").join(".");
}

function Live({ name, base, asked, order }) {
  const [messages, setMessages] = useState([]);
  const [isPaused, setIsPaused] = useState(false);
  const [count, setCount] = useState(0);
  const waiting = useRef([]);
  const state = useStream(`${base}/messages/stream${query(asked)}`, (message) => {
    waiting.current = [...waiting.current, message].slice(-MOST_SHOWN);
  });
  useEffect(() => {
    if (isPaused) return undefined;
    // Draw messages in batches, because many may arrive per second.
    const timer = setInterval(() => {
      const arrived = waiting.current;
      if (!arrived.length) return;
      waiting.current = [];
      setCount((before) => before + arrived.length);
      setMessages((before) => [...before, ...arrived].slice(-MOST_SHOWN));
    }, 250);
    return () => clearInterval(timer);
  }, [isPaused]);
  const shown = order === "first" ? [...messages].reverse() : messages;
  const said = isPaused ? "paused" : state === "open" ? "live" : "connecting …";
  return html`<div class="card">
    <div class="head">
      <p class="note">
        <span class=${said === "live" ? "live" : ""} role="status">${said}</span>${" "}
        ${count > messages.length
          ? `the last ${format.number(messages.length)} of ${format.counted(count, "message")}`
          : format.counted(count, "message")}
      </p>
      <button type="button" class="small" aria-pressed=${isPaused ? "true" : "false"} onClick=${() => setIsPaused(!isPaused)}>
        ${isPaused ? "Go on" : "Pause"}
      </button>
    </div>
    <${MessageList} topic=${name} messages=${shown} empty="Waiting for the next message." />
  </div>`;
}
