/** Draws the last half hour, as the server's stream reports it. */

import * as format from "../../console/format.js";
import { html, useEffect, useState } from "../../console/html.js";
import * as words from "../words.js";

const LATE_MS = 60_000;
const AGAIN_MS = 5_000;

/** Follows a stream. The browser reconnects, except after a refusal, which is repeated here. */
function useNow(path) {
  const [state, setState] = useState({ now: null, isOpen: false, problem: "" });
  useEffect(() => {
    let source;
    let timer = 0;
    const connect = () => {
      source = new EventSource(path);
      source.onopen = () => setState((last) => ({ ...last, isOpen: true, problem: "" }));
      source.onmessage = (event) => setState({ now: JSON.parse(event.data), isOpen: true, problem: "" });
      source.addEventListener("problem", (event) => {
        setState((last) => ({ ...last, problem: JSON.parse(event.data).error }));
      });
      source.onerror = () => {
        setState((last) => ({ ...last, isOpen: false }));
        if (source.readyState !== EventSource.CLOSED) return;
        source.close();
        clearTimeout(timer);
        timer = setTimeout(connect, AGAIN_MS);
      };
    };
    connect();
    return () => {
      clearTimeout(timer);
      source.close();
    };
  }, [path]);
  return state;
}

/** @param {{site: any}} props */
export function Now({ site }) {
  if (site && !site.has_now) {
    return html`<p class="empty">
      There is no live view. Start <code>barnabas pages serve</code> with <code>--bootstrap-server</code>.
    </p>`;
  }
  return html`<${Live} isLogs=${site?.kind === "logs"} />`;
}

function Live({ isLogs }) {
  const { now, isOpen, problem } = useNow("api/now/stream");
  const said = problem || now?.problem || (isOpen ? "" : now ? "The connection is lost. Connecting again …" : "");
  const banner = said && html`<div class="banner" role="alert"><p><bdi>${said}</bdi></p></div>`;
  if (!now) return html`${banner}<p class="empty waiting" role="status">Reading the last half hour …</p>`;
  const isLate = now.behind_ms > LATE_MS;
  const hits = isLogs ? "entries" : "hits";
  const others = [
    now.rejected > 0 && `${format.counted(now.rejected, "record")} could not be parsed`,
    now.older > 0 && `${format.counted(now.older, "record")} arrived late and ${now.older === 1 ? "is" : "are"} not counted`,
  ].filter(Boolean);
  return html`${banner}
    <p class="matching">
      <span class=${isOpen && !said ? "live" : "paused"}>${isOpen && !said ? "live" : "waiting"}</span>
      <span class=${isLate ? "alarm" : ""}> · ${format.duration(now.behind_ms / 1000)} behind</span>
      <span> · up to ${words.moment(now.at)} UTC</span>
    </p>
    ${(now.note || others.length > 0) && html`<p class="note">${[now.note, ...others].filter(Boolean).join(" · ")}</p>`}
    <section class="keys" aria-label="Key figures">
      ${now.online != null &&
      html`<${Figure} value=${now.online} label="visitors online" about="active in the last five minutes" name="online" />`}
      <${Figure} value=${now.hits} label=${hits} about="in the last 30 minutes" name="hits" />
      <${Figure} value=${now.errors} label="errors" about="in the last 30 minutes" name="errors" isBad=${now.errors > 0} />
      <${Figure}
        value=${now.minutes.at(-1)?.hits ?? 0}
        label=${`${hits} this minute`}
        about="the minute that has begun"
        name="minute"
      />
    </section>
    <div class="cards">
      <section class="card">
        <h2>${isLogs ? "Entries" : "Hits"} per minute</h2>
        <p class="note">the last 30 minutes; errors in red</p>
        <${Minutes} minutes=${now.minutes} noun=${hits} />
      </section>
      ${now.lists.map((list) => html`<${Leaders} key=${list.title} list=${list} width=${now.lists.length % 3 ? "half" : "third"} />`)}
    </div>`;
}

function Figure({ value, label, about, name, isBad }) {
  return html`<div class="key" data-now=${name}>
    <b class=${isBad ? "alarm" : undefined}>${format.number(value)}</b><span>${label}</span><span class="about">${about}</span>
  </div>`;
}

function Minutes({ minutes, noun }) {
  const most = Math.max(1, ...minutes.map(({ hits }) => hits));
  const total = minutes.reduce((sum, { hits }) => sum + hits, 0);
  const label = `${noun} per minute: ${format.number(total)} in ${minutes.length} minutes, at most ${format.number(most)}`;
  return html`<div class="minutes" role="img" aria-label=${label}>
    ${minutes.map(
      ({ at, hits, errors }, index) => html`<div
        key=${at}
        title=${`${words.minute(at)} UTC: ${format.number(hits)} ${noun}, ${format.counted(errors, "error")}`}
      >
        <i style=${{ "--share": `${(100 * hits) / most}%` }}
          ><u style=${{ "--share": hits ? `${(100 * Math.min(hits, errors)) / hits}%` : "0%" }}></u
        ></i>
        <span>${index % 10 === 9 ? words.minute(at) : index % 5 === 4 ? html`<span class="roomy">${words.minute(at)}</span>` : ""}</span>
      </div>`,
    )}
  </div>`;
}

function Leaders({ list, width }) {
  const most = Math.max(1, ...list.rows.map(({ count }) => count));
  return html`<section class=${`card ${width}`}>
    <h2>${list.title}</h2>
    ${list.rows.length
      ? html`<ol class=${`bars ${/error/i.test(list.title) ? "errors" : ""}`}>
          ${list.rows.map(
            ({ label, count }) => html`<li key=${label} style=${{ "--share": `${(100 * count) / most}%` }}>
              <span class="label" title=${label}><bdi>${label}</bdi></span><b>${format.number(count)}</b>
            </li>`,
          )}
        </ol>`
      : html`<p class="empty">None</p>`}
  </section>`;
}
