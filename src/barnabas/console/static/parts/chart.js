/** Draws a figure over the last minutes. */

import * as format from "../format.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { useIsDark } from "../theme.js";
import uPlot from "../vendor/uplot.js";

/**
 * @param {{series: {times: number[], values: (number | null)[]}, what: string,
 *     as: (value: number | null) => string, height?: number}} props
 */
export function Chart({ series, what, as, height = 190 }) {
  const place = useRef(null);
  const plot = useRef(null);
  const isDark = useIsDark();
  const [pointed, setPointed] = useState(null);
  const measured = series.values.filter((value) => value != null);
  const isReady = measured.length > 1;

  useEffect(() => {
    if (!isReady) return undefined;
    const options = optionsFor(place.current, { as, height, setPointed });
    plot.current = new uPlot(options, [series.times, series.values], place.current);
    const observer = new ResizeObserver(([entry]) => {
      plot.current?.setSize({ width: Math.floor(entry.contentRect.width), height });
    });
    observer.observe(place.current);
    return () => {
      observer.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [isReady, isDark, height]);

  useEffect(() => {
    plot.current?.setData([series.times, series.values]);
  }, [series]);

  if (!isReady) {
    return html`<p class="empty">There is a line here after two measurements, in a few seconds.</p>`;
  }
  const last = series.values.at(-1);
  const most = Math.max(...measured);
  const index = pointed != null && pointed < series.times.length ? pointed : null;
  const said =
    index == null
      ? `now ${as(last)}, peak ${as(most)}`
      : `${format.clock(series.times[index])}: ${as(series.values[index])}`;
  return html`<figure class="chart">
    <figcaption>${said}</figcaption>
    <div ref=${place} role="img" aria-label=${`${what}: now ${as(last)}, peak ${as(most)}`}></div>
  </figure>`;
}

function optionsFor(place, { as, height, setPointed }) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: colour("--soft"),
    font: "12px ui-sans-serif, system-ui, sans-serif",
    ticks: { show: false },
  };
  return {
    width: Math.max(200, Math.floor(place.clientWidth)),
    height,
    ms: 1,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 8 } },
    hooks: { setCursor: [(plot) => setPointed(plot.cursor.idx)] },
    scales: { y: { range: (plot, least, most) => [0, most > 0 ? most * 1.15 : 1] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 90,
        size: 30,
        values: (plot, splits) => splits.map((at) => format.clock(at)),
      },
      {
        ...axis,
        grid: { stroke: colour("--faint"), width: 1 },
        size: (plot, values) => 14 + 7 * Math.max(4, ...(values ?? []).map((text) => text.length)),
        values: (plot, splits) => splits.map((value) => as(value)),
      },
    ],
    series: [
      {},
      {
        stroke: colour("--first"),
        fill: `${colour("--first")}22`,
        width: 2,
        points: { show: false },
      },
    ],
  };
}
