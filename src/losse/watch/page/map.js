// Map of a model: each sampled transition at its state, by what the model predicted there.
import { colour, element, fill, number, variable } from "./parts.js";

const KINDS = [
  { key: "good", text: "right and sure", color: "#0072B2", mark: "dot" },
  { key: "unsure", text: "right, but unsure", color: "#56B4E9", mark: "ring" },
  { key: "warned", text: "wrong, and unsure", color: "#E69F00", mark: "triangle" },
  { key: "wrong", text: "wrong, though sure", color: "#D55E00", mark: "cross" },
  { key: "unknown", text: "right, certainty unknown", color: "#8c8c8c", mark: "ring" },
  { key: "off", text: "wrong, certainty unknown", color: "#CC79A7", mark: "cross" },
];
const chosen = { x: null, y: null, when: null, limit: 0.5 };

/** Draw the map of a probe, with its controls. */
export function drawMap(place, probe) {
  const sample = probe.sample;
  if (!sample?.obs?.length) { place.replaceChildren(element("p", { class: "muted" }, "No transition has been seen yet.")); return; }
  if (!place.querySelector("canvas")) build(place);
  place.again = () => update(place, probe);
  if (!place.watcher) {
    place.watcher = new ResizeObserver(() => place.again());
    place.watcher.observe(place.querySelector("canvas"));
  }
  update(place, probe);
}

function build(place) {
  const pick = (id, text, key) => element("label", {}, text, element("select", { id,
    onchange: (event) => { chosen[key] = event.target.value; place.again(); } }));
  place.replaceChildren(
    element("p", { class: "muted small" }, "Transitions of the whole run, each at the state where it began. "
      + "Errors and deviations are relative to the usual change of a step; above the limit they count as wrong or unsure."),
    element("p", { class: "filter" }, pick("map-x", "Across ", "x"), pick("map-y", "Up ", "y"),
      element("label", {}, "Prediction ", element("select", { id: "map-when", onchange: (event) => { chosen.when = event.target.value; place.again(); } },
        element("option", { value: "then" }, "made before learning it"), element("option", { value: "now" }, "of the model now"))),
      element("label", {}, "Limit ", element("input", { id: "map-limit", type: "range", min: "0.05", max: "1", step: "0.05", value: "0.5",
        oninput: (event) => { chosen.limit = Number(event.target.value); place.again(); } }), element("output", { for: "map-limit", id: "map-limit-at" }))),
    element("canvas", { class: "map", role: "img" }),
    element("ul", { class: "key", "aria-live": "polite" }));
}

/** Two directions of largest spread of standardised rows, by power iteration. */
export function principal(rows) {
  const n = rows.length, d = rows[0].length;
  const mean = rows[0].map((_, k) => rows.reduce((a, r) => a + r[k], 0) / n);
  const scale = rows[0].map((_, k) => Math.sqrt(rows.reduce((a, r) => a + (r[k] - mean[k]) ** 2, 0) / n) || 1);
  let left = rows.map((r) => r.map((v, k) => (v - mean[k]) / scale[k]));
  const scores = [];
  for (let round = 0; round < Math.min(2, d); round += 1) {
    let axis = Array.from({ length: d }, (_, k) => 1 + 0.1 * k);
    for (let i = 0; i < 60; i += 1) {
      const next = new Array(d).fill(0);
      for (const r of left) {
        const score = r.reduce((a, v, k) => a + v * axis[k], 0);
        r.forEach((v, k) => { next[k] += score * v; });
      }
      const size = Math.hypot(...next) || 1;
      axis = next.map((v) => v / size);
    }
    const own = left.map((r) => r.reduce((a, v, k) => a + v * axis[k], 0));
    scores.push(own);
    left = left.map((r, i) => r.map((v, k) => v - own[i] * axis[k]));
  }
  return scores;
}

/** What the model's prediction of each row was worth. */
export function classes(sample, when, limit) {
  const d = sample.obs[0].length, n = sample.obs.length;
  const changes = sample.obs.map((row, i) => row.map((v, k) => sample.reached[i][k] - v));
  const scale = Array.from({ length: d }, (_, k) => Math.sqrt(changes.reduce((a, c) => a + c[k] ** 2, 0) / n) || Infinity);
  const rms = (values) => Math.sqrt(values.reduce((a, v) => a + v * v, 0) / d);
  return sample.obs.map((_, i) => {
    const error = rms(sample[when][i].map((v, k) => (v - sample.reached[i][k]) / scale[k]));
    const deviations = sample[`${when}_std`][i];
    const known = deviations.every((v) => v !== null);
    const unsure = known && rms(deviations.map((v, k) => v / scale[k])) > limit;
    if (!known) return error > limit ? "off" : "unknown";
    if (error > limit) return unsure ? "warned" : "wrong";
    return unsure ? "unsure" : "good";
  });
}

function update(place, probe) {
  const { sample, dimensions } = probe;
  const many = dimensions.length > 1;
  const options = [...dimensions.map((name, k) => [String(k), `observation ${name}`]),
    ...(dimensions.length > 2 ? [["p0", "projection 1"], ["p1", "projection 2"]] : [])];
  chosen.x = fill(place.querySelector("#map-x"), options, chosen.x ?? "0");
  chosen.y = fill(place.querySelector("#map-y"), options, chosen.y ?? (many ? "1" : "0"));
  place.querySelector("#map-limit-at").textContent = String(chosen.limit);
  if (chosen.when === null) {
    // How sure it was then is asked rarely where the answer takes long: then the present tells more.
    const known = sample.then_std.filter((row) => row[0] !== null).length;
    chosen.when = known > sample.obs.length / 2 ? "then" : "now";
    place.querySelector("#map-when").value = chosen.when;
  }
  const projected = chosen.x.startsWith("p") || chosen.y.startsWith("p") ? principal(sample.obs) : null;
  const values = (axis) => (axis.startsWith("p") ? projected[Number(axis[1])] : sample.obs.map((row) => row[Number(axis)]));
  const kinds = classes(sample, chosen.when, chosen.limit);
  paint(place.querySelector("canvas"), values(chosen.x), values(chosen.y), kinds,
    Object.fromEntries(options)[chosen.x], Object.fromEntries(options)[chosen.y]);
  const counts = KINDS.map((kind) => ({ ...kind, count: kinds.filter((k) => k === kind.key).length }))
    .filter((kind) => kind.count || ["good", "unsure", "warned", "wrong"].includes(kind.key));
  const told = counts.map((kind) => `${kind.text}: ${Math.round(100 * kind.count / kinds.length)} %`);
  place.querySelector("canvas").setAttribute("aria-label", `Map of ${kinds.length} transitions. ${told.join("; ")}.`);
  place.querySelector("ul.key").replaceChildren(...counts.map((kind, i) => {
    const dot = element("canvas", { width: "28", height: "28", "aria-hidden": "true", class: "dot" });
    const pen = dot.getContext("2d");
    pen.scale(2, 2);
    mark(pen, kind, 7, 7);
    dot.style.width = dot.style.height = "14px";
    return element("li", {}, dot, told[i]);
  }));
}

function mark(pen, kind, x, y) {
  pen.strokeStyle = pen.fillStyle = colour(kind.color);
  pen.lineWidth = 1.6;
  pen.beginPath();
  if (kind.mark === "dot" || kind.mark === "ring") pen.arc(x, y, 3.2, 0, 7);
  else if (kind.mark === "triangle") { pen.moveTo(x, y - 4.5); pen.lineTo(x + 4.2, y + 3.2); pen.lineTo(x - 4.2, y + 3.2); pen.closePath(); }
  else { pen.moveTo(x - 3.5, y - 3.5); pen.lineTo(x + 3.5, y + 3.5); pen.moveTo(x + 3.5, y - 3.5); pen.lineTo(x - 3.5, y + 3.5); pen.lineWidth = 2.2; }
  if (kind.mark === "dot" || kind.mark === "triangle") pen.fill(); else pen.stroke();
}

/** A number at an axis, with the digits that its range asks for. */
const tick = (value, range) => number(Number(value.toFixed(Math.max(0, 1 - Math.floor(Math.log10(range || 1))))));

function paint(canvas, xs, ys, kinds, xName, yName) {
  const width = canvas.clientWidth || 400, height = canvas.clientHeight || 320;
  const dense = window.devicePixelRatio || 1;
  canvas.width = width * dense; canvas.height = height * dense;
  const pen = canvas.getContext("2d");
  pen.scale(dense, dense);
  const edge = { left: 66, right: 12, top: 10, bottom: 40 };
  const range = (values) => { const low = Math.min(...values), high = Math.max(...values), pad = 0.04 * (high - low || 1); return [low - pad, high + pad]; };
  const [x0, x1] = range(xs), [y0, y1] = range(ys);
  const px = (x) => edge.left + (x - x0) / (x1 - x0) * (width - edge.left - edge.right);
  const py = (y) => height - edge.bottom - (y - y0) / (y1 - y0) * (height - edge.top - edge.bottom);
  pen.font = "12px system-ui, sans-serif";
  pen.strokeStyle = variable("--grid"); pen.fillStyle = variable("--muted");
  for (let i = 0; i <= 4; i += 1) {
    const x = x0 + (x1 - x0) * i / 4, y = y0 + (y1 - y0) * i / 4;
    pen.beginPath(); pen.moveTo(px(x), edge.top); pen.lineTo(px(x), height - edge.bottom);
    pen.moveTo(edge.left, py(y)); pen.lineTo(width - edge.right, py(y)); pen.stroke();
    pen.textAlign = "center"; pen.fillText(tick(x, x1 - x0), px(x), height - edge.bottom + 15);
    pen.textAlign = "right"; pen.fillText(tick(y, y1 - y0), edge.left - 6, py(y) + 4);
  }
  pen.textAlign = "center"; pen.fillText(xName, (edge.left + width) / 2, height - 6);
  pen.save(); pen.translate(12, (height - edge.bottom) / 2); pen.rotate(-Math.PI / 2); pen.fillText(yName, 0, 0); pen.restore();
  for (const kind of KINDS) kinds.forEach((k, i) => { if (k === kind.key) mark(pen, kind, px(xs[i]), py(ys[i])); });
}
