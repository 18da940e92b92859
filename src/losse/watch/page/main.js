// The page: keeps the list of folders and the open one up to date as the server tells of changes.
import { showFolder } from "./runs.js";
import { showModel } from "./model.js";
import { byId, element, fill, runsText } from "./parts.js";

const THEMES = ["auto", "light", "dark"];
const state = { folder: null, versions: {}, run: null, data: null };

async function get(address) {
  const answer = await fetch(address);
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.problem ?? answer.statusText);
  return told;
}

async function showOverview() {
  const { folders, roots } = await get("api/overview");
  byId("empty").hidden = folders.length > 0;
  byId("view").hidden = folders.length === 0;
  if (!folders.length) {
    byId("empty").textContent = `No runs in ${roots.join(", ")} yet. Start one, for instance `
      + "losse train --env CartPole-v1, and this page will show it.";
    byId("folders").replaceChildren();
    return;
  }
  if (!folders.some((one) => one.id === state.folder)) {
    const asked = decodeURIComponent(location.hash.slice(1));
    open((folders.find((one) => one.name === asked) ?? folders[0]).id);
  }
  byId("folders").replaceChildren(...folders.map((one) => {
    const notes = [runsText(one.runs), one.running ? `${one.running} running` : null,
      one.problems ? `${one.problems} broken` : null].filter(Boolean);
    return element("li", {}, element("button", { type: "button", "data-id": one.id,
      "aria-current": String(one.id === state.folder), onclick: () => { open(one.id); history.replaceState(null, "", `#${encodeURIComponent(one.name)}`); refresh(); } },
    one.name, element("small", {}, notes.join(", "))));
  }));
  fill(byId("pick"), folders.map((one) => [one.id, `${one.name} (${runsText(one.runs)})`]), state.folder);
}

function open(id) {
  if (state.folder !== id) { state.folder = id; state.data = null; state.run = null; }
}

async function refresh() {
  if (!state.folder) return;
  try {
    const wanted = state.folder;
    const data = await get(`api/folder/${wanted}`);
    if (wanted !== state.folder) return;
    state.data = data;
    showFolder(data);
    for (const button of byId("folders").querySelectorAll("button")) {
      button.setAttribute("aria-current", String(button.dataset.id === wanted));
    }
    byId("pick").value = wanted;
    await showProbe();
  } catch (error) {
    say(String(error.message ?? error), "lost");
  }
}

async function showProbe() {
  const runs = state.data.runs.filter((run) => run.has_probe);
  byId("model").hidden = !runs.length;
  if (!runs.length) return;
  const names = runs.map((run) => [run.id, `${run.label}, ${run.setting}, seed ${run.seed}`]);
  const going = runs.find((run) => run.state === "running");
  const ours = runs.find((run) => run.method.startsWith("losse"));
  state.run = fill(byId("run"), names, state.run ?? (going ?? ours ?? runs[0]).id);
  showModel(await get(`api/probe/${state.run}`));
}

function say(text, kind) {
  byId("status").textContent = text;
  byId("status").className = `pill ${kind}`;
}

function follow() {
  const events = new EventSource("events");
  let busy = false, again = false;
  const update = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try { await showOverview(); await refresh(); } catch (error) { say(String(error.message), "lost"); }
    busy = false;
    if (again) { again = false; update(); }
  };
  events.onmessage = (event) => {
    const before = state.versions;
    state.versions = JSON.parse(event.data);
    say("live", "live");
    const moved = state.versions[state.folder] !== before[state.folder];
    if (moved || !state.folder) update(); else showOverview();
  };
  events.onerror = () => say("connection lost, trying again", "lost");
}

function applyTheme(choice) {
  const dark = choice === "dark" || (choice === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  byId("theme").textContent = `Theme: ${choice}`;
  byId("theme").dataset.choice = choice;
}

function remembered() {
  try { return localStorage.getItem("losse-theme") ?? "auto"; } catch { return "auto"; }
}

byId("theme").addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(byId("theme").dataset.choice) + 1) % THEMES.length];
  try { localStorage.setItem("losse-theme", next); } catch { /* a private window forgets it */ }
  applyTheme(next);
  refresh();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { applyTheme(remembered()); refresh(); });
byId("pick").addEventListener("change", (event) => { open(event.target.value); refresh(); });
byId("run").addEventListener("change", (event) => { state.run = event.target.value; showProbe(); });
applyTheme(remembered());
follow();
