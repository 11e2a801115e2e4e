/** Draws messages, each as a row that opens to show the whole message. */

import { get } from "../api.js";
import * as format from "../format.js";
import { html, useState } from "../html.js";
import { Preview, Whole } from "./content.js";
import { Time } from "./words.js";

/** @param {{topic: string, messages: object[], empty: any}} props rows such as `Message` of shapes.py */
export function MessageList({ topic, messages, empty }) {
  const [open, setOpen] = useState(() => new Set());
  if (!messages.length) return html`<div class="empty">${empty}</div>`;
  const toggle = (key) =>
    setOpen((before) => {
      const after = new Set(before);
      if (!after.delete(key)) after.add(key);
      return after;
    });
  return html`<table class="messages">
    <caption class="unseen">Messages</caption>
    <thead>
      <tr>
        <th scope="col">Offset</th>
        <th scope="col" class="roomy-cell" title="The partition">Part.</th>
        <th scope="col" class="roomy-cell">Time</th>
        <th scope="col">Key</th>
        <th scope="col">Value</th>
      </tr>
    </thead>
    <tbody>
      ${messages.flatMap((message) => {
        const key = `${message.partition}-${message.offset}`;
        const isOpen = open.has(key);
        return [
          html`<${Row} key=${key} message=${message} isOpen=${isOpen} onToggle=${() => toggle(key)} />`,
          isOpen && html`<${Details} key=${`${key}-details`} topic=${topic} message=${message} />`,
        ];
      })}
    </tbody>
  </table>`;
}

function Row({ message, isOpen, onToggle }) {
  const { partition, offset, time } = message;
  // Do not open the row while the user is selecting text.
  const onRow = (event) => !event.target.closest("button") && !String(getSelection()) && onToggle();
  return html`<tr class="opens" onClick=${onRow}>
    <th scope="row">
      <button
        type="button"
        class="opener"
        aria-expanded=${isOpen ? "true" : "false"}
        aria-label=${`Message at offset ${offset} of partition ${partition}`}
        onClick=${onToggle}
      >
        <span aria-hidden="true">${isOpen ? "▾" : "▸"}</span> ${format.number(offset)}
      </button>
    </th>
    <td class="roomy-cell">${partition}</td>
    <td class="roomy-cell"><${Time} at=${time} /></td>
    <td class="key-cell"><${Preview} content=${message.key} /></td>
    <td><${Preview} content=${message.value} /></td>
  </tr>`;
}

function Details({ topic, message }) {
  const [whole, setWhole] = useState(null);
  const [state, setState] = useState("");
  const { partition, offset, time, time_type: timeType, headers, key, value, headers_left_out: leftOut } = whole ?? message;
  const showAll = async () => {
    setState("asking");
    try {
      setWhole(await get(`api/topics/${encodeURIComponent(topic)}/messages/${partition}/${offset}`));
      setState("");
    } catch (error) {
      setState(error.message);
    }
  };
  const asking = { onAll: whole ? undefined : showAll, isAsking: state === "asking" };
  const kind = timeType === "append" ? "when the broker appended it" : "when the producer made it";
  return html`<tr class="details">
    <td colspan="5">
      <p class="where">
        Partition ${partition}, offset ${format.number(offset)}${" "}
        ${time != null && html`, ${format.exact(time)} (${kind})`}
      </p>
      <${Whole} content=${key} name="Key" ...${asking} />
      <${Whole} content=${value} name="Value" ...${asking} />
      ${headers.length > 0 &&
      html`<section class="content" aria-label="Headers">
        <p class="where"><b>Headers</b> ${format.number(headers.length + (leftOut ?? 0))}</p>
        <table class="headers">
          <caption class="unseen">Headers</caption>
          <tbody>
            ${headers.map(
              (header, index) => html`<tr key=${index}>
                <th scope="row"><code><bdi>${header.name}</bdi></code></th>
                <td><${Preview} content=${header.value} /></td>
              </tr>`,
            )}
          </tbody>
        </table>
        ${leftOut > 0 && html`<p class="where">
          ${format.counted(leftOut, "more header")} left out.
          <button type="button" class="small" onClick=${showAll}>Show all</button>
        </p>`}
      </section>`}
      ${state && state !== "asking" && html`<p class="alarm" role="alert">${state}</p>`}
    </td>
  </tr>`;
}
