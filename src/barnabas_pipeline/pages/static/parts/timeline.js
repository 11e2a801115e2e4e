/** Draws figures over time as stacked areas, in which a period can be selected by dragging. */

import { html, useEffect, useRef, useState } from "../../console/html.js";
import { useIsDark } from "../../console/theme.js";
import uPlot from "../../console/vendor/uplot.js";
import * as format from "../../console/format.js";
import * as words from "../words.js";

/** Above this number of buckets, a line through their middles looks calmer than steps. */
const MOST_STEPS = 40;
const TICK_WIDTH = 100;

/** Returns the name of a colour in the style sheet. @param {string} name of a series @param {number} index */
export function toneOf(name, index) {
  if (name === "other") return "moved";
  if (/error|fail|5xx/.test(name)) return "bad";
  if (/warn|4xx/.test(name)) return "warning";
  return ["first", "second", "good", "moved"][index % 4];
}

/**
 * @param {{timeline: any, title: string, otherText?: string, height?: number,
 *     onSelect?: (begin: number, end: number) => void}} props
 */
export function Timeline({ timeline, title, otherText = "", height = 280, onSelect }) {
  const place = useRef(null);
  const plot = useRef(null);
  const select = useRef(onSelect);
  select.current = onSelect;
  const isDark = useIsDark();
  const [pointed, setPointed] = useState(null);
  const shape = `${timeline.series.map(({ name }) => name)} ${timeline.before != null} ${timeline.step_ms}`;
  const count = timeline.series[0]?.values.length ?? 0;

  useEffect(() => {
    const options = optionsFor(place.current, { timeline, height, setPointed, select });
    plot.current = new uPlot(options, dataOf(timeline), place.current);
    const observer = new ResizeObserver(([entry]) => {
      plot.current?.setSize({ width: Math.floor(entry.contentRect.width), height });
    });
    observer.observe(place.current);
    return () => {
      observer.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [shape, isDark, height, count < MOST_STEPS, timeline.begins_at]);

  useEffect(() => {
    plot.current?.setData(dataOf(timeline));
  }, [timeline]);

  const index = pointed != null && pointed < count ? pointed : null;
  return html`<figure class="timeline">
    <figcaption>
      ${timeline.series.map(
        (each, number) => html`<span key=${each.name}
          ><i class=${`dot ${toneOf(each.name, number)}`}></i>${each.label}
          ${index != null && html`<b>${" "}${format.number(each.values[index])}</b>`}</span
        >`,
      )}
      ${timeline.before &&
      html`<span title=${otherText}
        ><i class="dash"></i>${timeline.series[0].label} in the other period
        ${index != null && html`<b>${" "}${format.number(timeline.before[index])}</b>`}</span
      >`}
      <span class="when">
        ${index != null
          ? spanOf(timeline, index)
          : html`per ${words.interval(timeline.step_ms)}${onSelect && html`<span class="hint"> · drag to select a period</span>`}`}
      </span>
    </figcaption>
    <div ref=${place} class="plot" role="img" aria-label=${`${title}: ${summary(timeline)}`}></div>
  </figure>`;
}

function spanOf({ begins_at, step_ms }, index) {
  const begin = begins_at + index * step_ms;
  return words.span(begin, begin + step_ms);
}

/** Describes a timeline for those who do not see it. */
function summary(timeline) {
  const parts = timeline.series.map(({ label, values }) => {
    const total = values.reduce((sum, each) => sum + each, 0);
    const most = values.reduce((best, each, index) => (each > values[best] ? index : best), 0);
    if (!total) return `${label}: none`;
    return `${label}: ${format.number(total)} in all, most on ${spanOf(timeline, most)} (${format.number(values[most])})`;
  });
  return parts.join("; ");
}

/** Returns the sums of the series from the bottom up, with the largest sum first, because it is drawn first. */
function dataOf({ begins_at, step_ms, series, before }) {
  const count = series[0]?.values.length ?? 0;
  const isStepped = count < MOST_STEPS;
  const times = Array.from({ length: count }, (_, index) => begins_at + (index + (isStepped ? 0 : 0.5)) * step_ms);
  let below = new Array(count).fill(0);
  const sums = series.map(({ values }) => (below = values.map((each, index) => each + below[index])));
  const lines = [...sums.reverse(), ...(before ? [before.slice(0, count)] : [])];
  if (!isStepped) return [times, ...lines];
  // Without its end, the last step would have no width.
  return [[...times, begins_at + count * step_ms], ...lines.map((line) => [...line, line.at(-1)])];
}

function optionsFor(place, { timeline, height, setPointed, select }) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const { begins_at, step_ms, series, before } = timeline;
  const count = series[0]?.values.length ?? 0;
  const paths = count < MOST_STEPS ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear();
  const areas = series.map(({ name }, index) => {
    const tone = colour(toneOf(name, index));
    return { fill: tone, stroke: tone, width: 0, points: { show: false }, paths };
  });
  const other = { stroke: colour("ink"), width: 1.5, dash: [5, 4], points: { show: false }, paths };
  const axis = { stroke: colour("soft"), font: "12px ui-sans-serif, system-ui, sans-serif", ticks: { show: false } };
  const stepOf = (plot, begin, end) => words.tickStep(end - begin, Math.max(2, plot.width / TICK_WIDTH));
  const bucket = (at) => Math.min(count, Math.max(0, (at - begins_at) / step_ms));
  return {
    width: Math.max(200, Math.floor(place.clientWidth)),
    height,
    ms: 1,
    tzDate: (at) => uPlot.tzDate(new Date(at), "UTC"),
    legend: { show: false },
    padding: [8, 26, 0, 0],
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: Boolean(select.current), y: false, setScale: false },
    },
    hooks: {
      setCursor: [(plot) => setPointed(plot.cursor.idx)],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 3) return;
          const first = Math.floor(bucket(plot.posToVal(left, "x")));
          const last = Math.max(first + 1, Math.ceil(bucket(plot.posToVal(left + width, "x"))));
          plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          select.current?.(begins_at + first * step_ms, begins_at + last * step_ms);
        },
      ],
    },
    scales: {
      x: { range: () => [begins_at, begins_at + Math.max(1, count) * step_ms] },
      y: { range: (plot, least, most) => [0, most > 0 ? most * 1.08 : 1] },
    },
    axes: [
      {
        ...axis,
        grid: { stroke: colour("faint"), width: 1 },
        size: 30,
        splits: (plot, number, begin, end) => words.ticks(begin, end, stepOf(plot, begin, end)),
        values: (plot, splits) => splits.map((at) => words.tick(at, stepOf(plot, plot.scales.x.min, plot.scales.x.max))),
      },
      {
        ...axis,
        grid: { stroke: colour("faint"), width: 1 },
        space: 44,
        size: 46,
        values: (plot, splits) => splits.map((value) => words.short(value)),
      },
    ],
    series: [{}, ...areas.reverse(), ...(before ? [other] : [])],
  };
}
