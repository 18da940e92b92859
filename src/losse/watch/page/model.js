// Panels of one run's world model: imagined beside real, the map of its errors, its encoder.
import { draw } from "./chart.js";
import { bar, byId, colour, element, fill, number, table, variable } from "./parts.js";
import { drawMap } from "./map.js";

const BLUE = "#0072B2", ORANGE = "#E69F00", VERMILION = "#D55E00";
const chosen = { dimension: null, start: 0, action: "taken" };

const dimensionName = (probe, k) => `observation ${probe.dimensions[k]}`;

/** Draw the panels of a probe. */
export function showModel(probe) {
  byId("model-problem").hidden = !probe.problem;
  byId("model-body").hidden = Boolean(probe.problem);
  byId("model-step").textContent = probe.problem ? "" : `as of step ${number(probe.step)}`;
  if (probe.problem) { byId("model-problem").textContent = probe.problem; return; }
  showPath(probe);
  drawMap(byId("map"), probe);
  showLearned(probe);
}

function showPath(probe) {
  const place = byId("path"), episode = probe.episode;
  if (!episode?.obs?.length) { place.replaceChildren(element("p", { class: "muted" }, "No episode has been seen yet.")); return; }
  if (!place.querySelector("select")) {
    place.replaceChildren(
      element("p", { class: "muted small" }, "The newest episode as it happened, the model's prediction of each "
        + "single step with a band of two standard deviations, and what the model imagines from one state on, "
        + "with the actions that were taken. The model has learned these steps by now; the map shows predictions from before."),
      element("p", { class: "filter" },
        element("label", {}, "Shown ", element("select", { id: "dimension", onchange: (e) => { chosen.dimension = e.target.value; place.again(); } })),
        element("label", {}, "Imagine from step ", element("input", { id: "start", type: "range", min: "0", step: "1", value: "0",
          oninput: (e) => { chosen.start = Number(e.target.value); place.again(); } }),
        element("output", { id: "start-at", for: "start" }))),
      element("div", { id: "path-chart" }),
      element("p", { class: "filter" },
        element("label", {}, "Action there ", element("select", { id: "action", onchange: (e) => { chosen.action = e.target.value; place.again(); } }))),
      element("div", { id: "path-table", class: "scroll", tabindex: "0", role: "region", "aria-label": "Prediction at the chosen state" }));
  }
  place.again = () => path(probe);
  path(probe);
}

function path(probe) {
  const { obs, reached, expected, expected_std: std, starts, imagined, choices, actions } = probe.episode;
  const names = probe.dimensions.map((_, k) => [String(k), dimensionName(probe, k)]);
  chosen.dimension = fill(byId("dimension"), names, chosen.dimension ?? "0");
  const d = Number(chosen.dimension);
  const slider = byId("start");
  slider.max = String(starts.length - 1);
  chosen.start = Math.min(chosen.start, starts.length - 1);
  slider.value = String(chosen.start);
  const at = starts[chosen.start];
  byId("start-at").textContent = String(at);
  slider.setAttribute("aria-valuetext", `step ${at}`);
  const steps = obs.map((_, i) => i), after = steps.map((i) => i + 1);
  const band = (sign) => expected.map((row, i) => (std[i][d] === null || row[d] === null ? null : row[d] + sign * 2 * std[i][d]));
  const line = imagined[chosen.start].map((row) => row[d]);
  const lines = [
    { label: "prediction plus two deviations", x: after, y: band(1), color: ORANGE, width: 0 },
    { label: "prediction less two deviations", x: after, y: band(-1), color: ORANGE, width: 0 },
    { label: "happened", x: [0, ...after], y: [obs[0][d], ...reached.map((row) => row[d])], color: BLUE, width: 2 },
    { label: "predicted, one step ahead", x: after, y: expected.map((row) => row[d]), color: ORANGE, dash: [6, 4], width: 1.6 },
    { label: `imagined from step ${at} on`, x: line.map((_, i) => at + i), y: line, color: VERMILION, width: 2.5 },
  ];
  const errors = reached.map((row, i) => Math.abs(row[d] - expected[i][d]));
  const mean = errors.reduce((a, b) => a + b, 0) / errors.length;
  draw(byId("path-chart"), { lines, bands: [[0, 1, colour(ORANGE) + "40"]], xLabel: "step of the episode",
    yLabel: dimensionName(probe, d), height: 240,
    describe: `${dimensionName(probe, d)} over ${obs.length} steps. One-step predictions are wrong by ${number(mean)} on average.` });
  keyOf(byId("path-chart"), [["happened", BLUE], ["predicted, one step ahead, with band", ORANGE], [`imagined from step ${at} on`, VERMILION]]);
  const offered = [["taken", `the one taken: ${shownAction(actions[at])}`],
    ...choices.map((one, k) => [String(k), shownAction(one.action)])];
  chosen.action = fill(byId("action"), offered, chosen.action);
  const other = chosen.action === "taken" ? null : choices[Number(chosen.action)];
  const rows = probe.dimensions.map((_, k) => {
    const predicted = other ? other.expected[chosen.start][k] : expected[at][k];
    const deviation = other ? other.std[chosen.start][k] : std[at][k];
    const happened = other ? null : reached[at][k];
    const off = happened === null ? null : Math.abs(happened - predicted);
    const verdict = happened === null ? "not tried" : deviation === null ? number(off)
      : `${number(off)} (${off <= 2 * deviation ? "inside" : "outside"} the band)`;
    return [dimensionName(probe, k), number(obs[at][k]), `${number(predicted)} ± ${deviation === null ? "unknown" : number(2 * deviation)}`,
      happened === null ? "–" : number(happened), verdict];
  });
  byId("path-table").replaceChildren(table([{ text: "number" }, { text: "before", n: true },
    { text: "predicted ± band", n: true }, { text: "happened", n: true }, { text: "off by", n: true }], rows));
}

const shownAction = (action) => (Array.isArray(action) ? `(${action.map(number).join(", ")})` : number(action));

function keyOf(place, entries) {
  place.querySelector("ul.key")?.remove();
  place.append(element("ul", { class: "key" }, ...entries.map(([text, color]) => {
    const dot = element("canvas", { width: "26", height: "10", "aria-hidden": "true" });
    const pen = dot.getContext("2d");
    pen.fillStyle = colour(color); pen.fillRect(0, 3, 26, 4);
    return element("li", {}, dot, text);
  })));
}

function showLearned(probe) {
  const place = byId("learned"), history = probe.insight ?? [];
  const last = history.at(-1)?.learners ?? [];
  if (!last.length) { place.replaceChildren(element("p", { class: "muted" }, "This world model has no encoder, or has learned nothing yet.")); return; }
  const name = (one) => (one.learner === null ? "all actions" : `action ${one.learner}`);
  const shades = [BLUE, ORANGE, "#009E73", "#CC79A7", "#56B4E9", VERMILION];
  const series = (key) => last.map((one, k) => {
    const points = history.map((moment) => [moment.step, moment.learners.find((l) => l.learner === one.learner)?.[key] ?? null])
      .filter(([, y]) => y !== null);
    return { label: name(one), x: points.map((p) => p[0]), y: points.map((p) => p[1]), color: shades[k % shades.length], width: 1.8 };
  });
  const error = element("div"), ridge = element("div");
  place.replaceChildren(
    element("h4", {}, "Prequential error (before learning, over the variance)"), error,
    element("h4", {}, "Ridge"), ridge,
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Learners" },
      table([{ text: "learner" }, { text: "encoder" }, { text: "features", n: true }, { text: "ridge", n: true }, { text: "prequential error", n: true }],
        last.map((one) => [name(one), one.encoder, number(one.features), number(one.ridge), number(one.prequential_error)]))),
    element("details", { open: true }, element("summary", {}, "Share of each input in the encoder's axes"),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Shares of inputs" },
        table([{ text: "input" }, ...last.slice(0, 4).map((one) => ({ text: name(one) }))],
          last[0].axes.slice(0, 24).map((_, i) => [`input ${i}`, ...last.slice(0, 4).map((one) =>
            element("span", {}, bar(one.axes[i] / Math.max(...one.axes)), ` ${Math.round(100 * one.axes[i])} %`))])))));
  draw(error, { lines: series("prequential_error"), xLabel: "steps", yLabel: "NMSE", log: true, height: 150, markers: true,
    describe: `Prequential error, last: ${last.map((one) => `${name(one)} ${number(one.prequential_error)}`).join(", ")}` });
  draw(ridge, { lines: series("ridge"), xLabel: "steps", yLabel: "ridge", log: true, height: 150, markers: true,
    describe: `Ridge, last: ${last.map((one) => `${name(one)} ${number(one.ridge)}`).join(", ")}` });
}
