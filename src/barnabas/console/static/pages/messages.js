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
/** What has been read stays as it is: only new messages are asked for, by `Read again`. */
const NEVER_MS = 2 ** 31 - 1;
const TYPED_MS = 400;

/** @param {{name: string, filters: Record<string, string>}} props */
export function MessagesPage({ name, filters }) {
  const { partition = "", from = "latest", at = "", search = "", order = "last", follow = "" } = filters;
  const base = `api/topics/${encodeURIComponent(name)}`;
  const { data: topic } = usePoll(base, 15000);
  const partitions = (topic?.partitions ?? []).map((each) => each.partition);
  return html`
    <${Heading}
      over=${html`<a href="#/topics">Topics</a> / <a href=${link(["topics", name])}><${Name}>${name}<//></a>`}
      title="Messages"
      note="Reading here changes no group's offsets."
    />
    <${Controls} ...${{ partition, from, at, search, order, follow, partitions }} />
    ${follow
      ? html`<${Live} key=${`${partition} ${search}`} name=${name} base=${base} asked=${{ partition, search }} order=${order} />`
      : html`<${Range} name=${name} base=${base} asked=${{ partition, from, at, search }} order=${order} />`}
  `;
}

function Controls({ partition, from, at, search, order, follow, partitions }) {
  const [typed, setTyped] = useTyped(search, (text) => setFilters({ search: text }));
  const where = /^\d+$/.test(from) ? "offset" : from;
  const shown = partition && !partitions.includes(Number(partition)) ? [...partitions, partition] : partitions;
  const chooseWhere = (value) => {
    if (value === "offset") setFilters({ from: "0", at: "", partition: partition || partitions[0] || "0" });
    else setFilters({ from: value, at: value === "time" ? Date.now() - 3600000 : "" });
  };
  return html`<form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
    <select aria-label="Partition" value=${partition} onChange=${(event) => setFilters({ partition: event.target.value })}>
      <option value="" disabled=${where === "offset"}>All partitions</option>
      ${shown.map((each) => html`<option key=${each} value=${String(each)}>Partition ${each}</option>`)}
    </select>
    ${!follow &&
    html`<select aria-label="Where to start" value=${where} onChange=${(event) => chooseWhere(event.target.value)}>
        <option value="latest">The latest</option>
        <option value="earliest">From the start</option>
        <option value="offset">From an offset</option>
        <option value="time">From a time</option>
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

/** A search reads many records, so it waits until nobody types. */
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
  // The turn is no part of the request: it only makes the component ask once more.
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

/** Offers the messages before and after: of one partition, since each has its own offsets. */
function Onward({ data, asked, onAgain }) {
  const { partition } = asked;
  const next = partition === "" ? undefined : data.next[partition];
  const first = Math.min(...data.messages.map(({ offset }) => offset));
  const goTo = (offset) => setFilters({ from: String(Math.max(0, offset)), at: "" });
  return html`<nav class="paging" aria-label="More messages">
    ${partition !== "" &&
    html`<button type="button" disabled=${!(first > 0) || !Number.isFinite(first)} onClick=${() => goTo(first - LIMIT)}>Older</button>`}
    <button type="button" onClick=${onAgain}>Read again</button>
    ${partition !== "" && html`<button type="button" disabled=${next == null} onClick=${() => goTo(next)}>Newer</button>`}
    ${partition === "" && html`<span>Choose a partition to go on from here.</span>`}
  </nav>`;
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
    // Many messages a second are drawn together.
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
