// Panels of a folder: curves of all runs, their time, the sweep, and what cannot be read.
import { draw, numbers } from "./chart.js";
import { bar, byId, colour, duration, element, fill, number, runsText, swatch, table } from "./parts.js";

const RETURNS = ["train", "plan", "discrete-control", "continuous-control", "classic-control",
  "replay-efficiency", "planning", "gridworld-dqn", "dyna"];
const MANY = 12;
const hidden = new Set();
const choice = { mean: null, log: true, setting: null };

/** Draw everything of a folder but the inside of its models. */
export function showFolder(folder) {
  byId("title").textContent = folder.name;
  const states = {};
  for (const run of folder.runs) states[run.state] = (states[run.state] ?? 0) + 1;
  const told = Object.entries(states).map(([state, n]) => `${n} ${state}`);
  byId("about").textContent = `${folder.experiments.join(", ")}: ${runsText(folder.runs.length)}`
    + (told.length ? ` (${told.join(", ")})` : "");
  showProblems(folder.problems);
  showSweep(folder.sweep);
  showFilter(folder);
  showCurves(folder);
  showTime(folder);
}

function showProblems(problems) {
  byId("problems").hidden = !problems.length;
  byId("problems").querySelector("ul").replaceChildren(
    ...problems.slice(0, 20).map((text) => element("li", {}, text)),
    ...(problems.length > 20 ? [element("li", {}, `and ${problems.length - 20} more`)] : []));
}

function showSweep(sweep) {
  byId("sweep").hidden = !sweep;
  if (!sweep) return;
  const failed = sweep.failures ?? [];
  const done = sweep.done ?? 0, total = sweep.total ?? 0;
  const left = sweep.state === "running" && sweep.seconds_left != null
    ? `, about ${duration(sweep.seconds_left)} left` : "";
  byId("sweep-body").replaceChildren(
    element("p", {}, element("span", { class: `pill ${sweep.state}` }, sweep.state),
      ` ${sweep.stage ? `${sweep.stage}: ` : ""}${done} of ${total} runs done, ${failed.length} failed${left}`),
    element("progress", { max: String(total || 1), value: String(done), "aria-label": "Runs done" }),
    sweep.reason ? element("p", {}, sweep.reason) : null ?? "",
    ...failed.map((one) => element("details", {},
      element("summary", {}, `Failed: ${one.run}: ${one.reason}`), element("pre", { tabindex: "0" }, one.trace || one.reason))));
}

function settingsOf(folder) {
  return [...new Set(folder.runs.map((run) => `${run.stage === "sweep" ? "sweep: " : ""}${run.setting}`))];
}

const settingOf = (run) => `${run.stage === "sweep" ? "sweep: " : ""}${run.setting}`;

function shownRuns(folder) {
  return folder.runs.filter((run) => settingOf(run) === choice.setting && !hidden.has(run.method));
}

function showFilter(folder) {
  const form = byId("filter");
  const settings = settingsOf(folder);
  if (!settings.includes(choice.setting)) choice.setting = settings[0] ?? null;
  const alike = folder.runs.filter((run) => settingOf(run) === choice.setting);
  const methods = new Map(alike.map((run) => [run.method, run]));
  const mean = choice.mean ?? alike.length > MANY;
  const signature = JSON.stringify([folder.id, settings, [...methods.keys()], document.documentElement.dataset.theme]);
  if (form.dataset.made === signature) return;  // what a user is using is not replaced
  form.dataset.made = signature;
  const again = () => { showCurves(folder); };
  const pick = element("select", { id: "setting", onchange: (event) => {
    choice.setting = event.target.value; choice.mean = null; form.dataset.made = ""; showFilter(folder); again();
  } });
  fill(pick, settings.map((name) => [name, name]), choice.setting);
  const boxes = [...methods.values()].map((run) => element("label", {},
    element("input", { type: "checkbox", checked: !hidden.has(run.method), onchange: (event) => {
      if (event.target.checked) hidden.delete(run.method); else hidden.add(run.method);
      again();
    } }), swatch(run.color, run.dash), run.label));
  form.replaceChildren(
    element("label", {}, "Task", pick),
    element("fieldset", {}, element("legend", {}, "Methods"), ...boxes),
    element("label", {}, element("input", { type: "checkbox", id: "mean", checked: mean, onchange: (event) => {
      choice.mean = event.target.checked; again();
    } }), "Mean of seeds"),
    element("label", {}, element("input", { type: "checkbox", id: "log", checked: choice.log, onchange: (event) => {
      choice.log = event.target.checked; again();
    } }), "Logarithmic error"));
  form.onsubmit = (event) => event.preventDefault();
}

/** Mean and standard error of several lines, on the places that all of them reach. */
export function meanOf(lines) {
  const places = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  const at = (line, x) => {
    const { x: xs, y: ys } = line;
    if (!xs.length || x < xs[0] || x > xs.at(-1)) return null;
    let low = 0, high = xs.length - 1;
    while (high - low > 1) { const m = (low + high) >> 1; if (xs[m] <= x) low = m; else high = m; }
    if (xs[high] === xs[low]) return ys[low];
    return ys[low] + (ys[high] - ys[low]) * (x - xs[low]) / (xs[high] - xs[low]);
  };
  const x = [], mean = [], low = [], high = [];
  for (const place of places) {
    const values = lines.map((line) => at(line, place)).filter((y) => y !== null && !Number.isNaN(y));
    if (values.length < lines.length) continue;
    const m = values.reduce((a, b) => a + b, 0) / values.length;
    const spread = values.reduce((a, b) => a + (b - m) ** 2, 0);
    const error = values.length > 1 ? Math.sqrt(spread / (values.length - 1) / values.length) : 0;
    x.push(place); mean.push(m); low.push(m - error); high.push(m + error);
  }
  return { x, mean, low, high };
}

function showCurves(folder) {
  const runs = shownRuns(folder);
  const mean = choice.mean ?? runs.length > MANY;
  const box = byId("mean");
  if (box) box.checked = mean;
  const returns = folder.experiments.some((name) => RETURNS.includes(name));
  byId("return-h").textContent = returns ? "Return" : "Score over time";
  chart(byId("return"), runs, "curve", { mean, yLabel: returns ? "return" : "score", what: returns ? "return" : "score" });
  chart(byId("error"), runs, "model_error", { mean, log: choice.log, yLabel: "relative to the change",
    what: "model error", none: "No run of this choice has a world model whose error is known." });
}

function chart(place, runs, key, { mean, log, yLabel, what, none }) {
  let lines = runs.filter((run) => run[key][0].length).map((run) => ({
    label: `${run.label}, seed ${run.seed}`, method: run.method, x: run[key][0], y: run[key][1],
    color: run.color, dash: run.dash, width: runs.length > MANY ? 1 : 1.6,
  }));
  const bands = [];
  if (mean) {
    const groups = new Map();
    for (const line of lines) groups.set(line.method, [...(groups.get(line.method) ?? []), line]);
    const made = [];
    for (const group of groups.values()) {
      const m = meanOf(group);
      const same = { color: group[0].color, dash: group[0].dash, x: m.x };
      const label = `${group[0].label.split(", seed")[0]}, mean of ${group.length}`;
      made.push({ ...same, label, y: m.mean, width: 2 });
      if (group.length > 1) {
        bands.push([made.length, made.length + 1, colour(group[0].color) + "33"]);
        made.push({ ...same, label: `${label}, plus one standard error`, y: m.high, width: 0 },
          { ...same, label: `${label}, less one standard error`, y: m.low, width: 0 });
      }
    }
    lines = made;
  }
  const told = lines.filter((line) => line.width !== 0);
  const last = told.filter((line) => line.y.length).slice(0, 8).map((line) => `${line.label} ${number(line.y.at(-1))}`);
  const describe = told.length ? `Line chart of ${what} against steps, ${told.length} lines. Last values: ${last.join("; ")}.` : none;
  const frame = element("div");
  place.chart?.destroy?.();
  place.firstElementChild?.chart?.destroy?.();
  const open = place.querySelector("details")?.open;
  place.replaceChildren(frame);
  draw(frame, { lines, bands, xLabel: "steps", yLabel, log, describe });
  if (told.length) {
    const list = numbers(told, what);
    list.open = open ?? false;
    place.append(list);
  }
}

function showTime(folder) {
  const now = Date.now() / 1000;
  const ms = (value) => (value === undefined || value === null ? "–" : `${number(value)} ms`);
  const rows = folder.runs.slice(0, 200).map((run) => {
    const share = run.model_share;
    const silent = run.state === "running" && now - run.updated > 120;
    const state = silent ? `silent for ${duration(now - run.updated)}` : run.state;
    const steps = run.of ? `${number(run.steps)} of ${number(run.of)}` : number(run.steps);
    return [
      element("span", {}, run.label), String(run.setting), String(run.seed),
      element("span", { class: `pill ${silent ? "lost" : run.state}`, title: run.reason ?? "" },
        run.reason ? `${state}: ${run.reason}` : state),
      steps, number(run.score), duration(run.seconds),
      share === undefined ? "–" : element("span", {}, bar(share), ` ${Math.round(100 * share)} %`),
      ms(run.update_ms), ms(run.imagination_ms), ms(run.decision_ms),
    ];
  });
  const head = [{ text: "method" }, { text: "task" }, { text: "seed", n: true }, { text: "state" },
    { text: "steps", n: true }, { text: "score", n: true }, { text: "time", n: true },
    { text: "model's share of time" }, { text: "learning, per step", n: true },
    { text: "imagining, per step", n: true }, { text: "decision", n: true }];
  byId("time").replaceChildren(table(head, rows),
    ...(folder.runs.length > 200 ? [element("p", { class: "muted" }, `and ${folder.runs.length - 200} more runs`)] : []));
}
