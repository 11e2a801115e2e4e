/** Answers: is the cluster well, and what needs attention? */

import * as format from "../format.js";
import { html } from "../html.js";
import { Chart } from "../parts/chart.js";
import { EventList } from "../parts/event-list.js";
import { Waiting } from "../parts/state.js";
import { BrokerLink, Card, Heading, Keys, Known, Mark } from "../parts/words.js";

const TONES = { critical: "bad", warning: "warning", info: "calm" };

/** @param {{overview: object | null}} props `Overview` of shapes.py, which the frame asks for */
export function OverviewPage({ overview }) {
  if (!overview) return html`<${Waiting} />`;
  const urgent = overview.findings.filter(({ severity }) => severity !== "info");
  return html`
    <${Heading}
      over="Overview"
      title=${title(overview, urgent)}
      note=${html`Cluster <code>${overview.cluster_id || format.DASH}</code> at <bdi>${overview.title}</bdi>`}
    />
    <${Findings} findings=${overview.findings} />
    <${Keys} figures=${figures(overview)} />
    <div class="cards">
      <${Card} title="Records in" note="Records appended per second, over the last minutes">
        <${Chart} series=${overview.records_in} what="Records appended per second" as=${format.rate} />
      <//>
      <${Card}
        title="Last events"
        aside=${html`<a href="#/events">ALL EVENTS</a>`}
        note="What the brokers decided, and why"
      >
        <${EventList} events=${overview.events} silent=${overview.silent} empty="The brokers have reported no events yet." />
      <//>
    </div>
  `;
}

function title(overview, urgent) {
  if (overview.error && !overview.looked_at) return "The cluster does not answer";
  if (!urgent.length) return "The cluster is well";
  if (urgent.length === 1) return "One thing needs attention";
  return `${format.number(urgent.length)} things need attention`;
}

function Findings({ findings }) {
  if (!findings.length) return html`<p class="calm"><b>Nothing needs you.</b></p>`;
  return html`<ul class="findings" aria-label="Findings">
    ${findings.map(
      (finding) => html`<li class=${`card finding edge-${TONES[finding.severity]}`} key=${finding.what}>
        <div class="head">
          <h2><bdi>${finding.what}</bdi></h2>
          <${Mark} tone=${TONES[finding.severity]}>${finding.severity}<//>
        </div>
        ${finding.why && html`<p class="cause">
          <span>Cause at ${format.clock(finding.at)}:</span> <bdi>${finding.why}</bdi>
        </p>`}
        ${finding.advice && html`<p class="advice"><span>Advice:</span> <bdi>${finding.advice}</bdi></p>`}
        ${finding.link.startsWith("#/") && html`<p class="go"><a href=${finding.link}>Show the details</a></p>`}
      </li>`,
    )}
  </ul>`;
}

function figures(overview) {
  const { brokers, controller, topics, partitions, leaderless, under_replicated: behind } = overview;
  const replicas = [
    leaderless > 0 && `${format.number(leaderless)} without a leader`,
    behind > 0 && `${format.number(behind)} under-replicated`,
  ].filter(Boolean);
  return [
    {
      value: format.number(brokers),
      what: brokers === 1 ? "broker" : "brokers",
      href: "#/brokers",
      about:
        controller == null
          ? "no controller known"
          : html`<${BrokerLink} id=${controller} /> is the controller`,
    },
    {
      value: format.number(topics),
      what: topics === 1 ? "topic" : "topics",
      href: "#/topics",
      about: [format.counted(partitions, "partition"), ...replicas].join(", "),
      tone: leaderless ? "bad" : behind ? "warning" : "",
    },
    {
      value: format.number(overview.groups),
      what: overview.groups === 1 ? "consumer group" : "consumer groups",
      href: "#/groups",
      about: overview.groups_behind
        ? `${format.number(overview.groups_behind)} behind or stopped`
        : "none behind",
      tone: overview.groups_behind ? "warning" : "",
    },
    {
      value: html`<${Known} value=${overview.size} as=${format.bytes} />`,
      what: "on disk",
      about: "all replicas together",
    },
  ];
}
