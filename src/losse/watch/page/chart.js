// Line charts on uPlot: one look, a readout for the nearest line, and numbers as a table.
import uPlot from "./vendor/uPlot.esm.js";
import { element, number, colour, variable } from "./parts.js";

const charts = new Set();
const resize = new ResizeObserver((entries) => {
  for (const entry of entries) {
    const chart = entry.target.chart;
    const width = Math.floor(entry.contentRect.width);
    if (chart && width > 0 && width !== chart.width) chart.setSize({ width, height: chart.height });
  }
});

/** Put lines with their own places on one axis: [places, values of line 1, ...]. */
export function joined(lines) {
  const places = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  const index = new Map(places.map((x, i) => [x, i]));
  const columns = lines.map((line) => {
    const values = new Array(places.length).fill(undefined);  // undefined: the line goes on
    line.x.forEach((x, i) => { values[index.get(x)] = line.y[i]; });
    return values;
  });
  return [places, ...columns];
}

/**
 * Draw lines into a place of the page; what was there is replaced.
 * A line has label, x, y, color, dash, width; bands are pairs [upper, lower] of line numbers.
 */
export function draw(place, { lines, xLabel, yLabel, log = false, height = 280, bands = [], describe,
  markers = false }) {
  if (place.chart) { place.chart.destroy(); charts.delete(place); place.chart = null; }
  place.replaceChildren();
  if (!lines.some((line) => line.x.length)) {
    place.append(element("p", { class: "muted" }, describe || "There is nothing to show yet."));
    return;
  }
  const frame = element("div", { role: "img", "aria-label": describe || yLabel });
  const readout = element("p", { class: "readout", "aria-hidden": "true" });
  place.append(frame, readout);
  const text = variable("--muted"), grid = variable("--grid");
  const positive = log && lines.some((line) => line.y.some((y) => y > 0));
  const shown = positive ? lines.map((l) => ({ ...l, y: l.y.map((y) => (y > 0 ? y : null)) })) : lines;
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 },
    font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 18 };
  const options = {
    width: Math.max(200, Math.floor(place.clientWidth || 400)), height,
    legend: { show: false },
    focus: { alpha: lines.length > 1 ? 0.25 : 1 },
    cursor: { focus: { prox: 24 }, drag: { x: true, y: false } },
    scales: { x: { time: false }, y: positive ? { distr: 3 } : {} },
    axes: [
      { ...axis, label: xLabel, size: 30, values: (_, v) => v.map((x) => number(x)) },
      { ...axis, label: yLabel, size: 62, values: (_, v) => v.map((y) => (y == null ? "" : number(y))) },
    ],
    series: [{}, ...shown.map((line) => ({
      label: line.label, stroke: colour(line.color), dash: line.dash, width: line.width ?? 1.6,
      spanGaps: false, points: { show: markers || line.x.length === 1, size: 5 },
    }))],
    bands: bands.map(([upper, lower, color]) => ({ series: [upper + 1, lower + 1], fill: color })),
    hooks: { setCursor: [(chart) => say(chart)], setSeries: [(chart, i) => { chart.near = i; say(chart); }] },
  };
  function say(chart) {
    const { idx } = chart.cursor;
    if (idx == null) { readout.textContent = ""; return; }
    const i = chart.near;
    const x = number(chart.data[0][idx]);
    const value = i ? chart.data[i][idx] : null;
    readout.textContent = value == null ? `${xLabel} ${x}`
      : `${lines[i - 1].label}: ${number(value)} at ${xLabel} ${x}`;
  }
  place.chart = new uPlot(options, joined(shown), frame);
  frame.chart = place.chart;
  resize.observe(frame);
  charts.add(place);
}

/** Numbers behind a chart, folded away: for reading aloud and for copying. */
export function numbers(lines, what) {
  const rows = lines.filter((line) => line.x.length).map((line) => {
    const known = line.y.filter((y) => y != null);
    const cells = [line.label, number(line.x.at(-1)), number(known.at(-1)),
      number(Math.min(...known)), number(Math.max(...known))];
    return element("tr", {}, ...cells.map((c, i) => element(i ? "td" : "th", i ? { class: "n" } : { scope: "row" }, c)));
  });
  const head = ["run", "last step", "last", "lowest", "highest"];
  return element("details", {}, element("summary", {}, `Numbers: ${what}`),
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Numbers: ${what}` },
      element("table", {},
        element("thead", {}, element("tr", {}, ...head.map((h, i) => element("th", { scope: "col", class: i ? "n" : "" }, h)))),
        element("tbody", {}, ...rows))));
}
