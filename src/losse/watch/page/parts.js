// Small parts of all panels: elements, numbers in words, colours that suit the theme.

/** An element with attributes and children; text is never read as markup. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (typeof value === "boolean") made.toggleAttribute(name, value);
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export const byId = (id) => document.getElementById(id);

/** A number with about four digits; a dash where there is none. */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return value.toExponential(2).replace("e+", "e");
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(4)));
}

/** A number of runs in words. */
export const runsText = (n) => `${n} ${n === 1 ? "run" : "runs"}`;

/** Seconds in words. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 60) return `${Number(seconds.toPrecision(2))} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

export const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A colour of the figures, made visible on the present ground. */
export function colour(hex) {
  const dark = document.documentElement.dataset.theme === "dark";
  if (!dark) return { "#f0e442": "#b5a900" }[hex.toLowerCase()] ?? hex;
  return { "#000000": "#f2f4f7", "#0072b2": "#4ab0ee", "#8c510a": "#d69a52", "#d55e00": "#ff8a3d",
    "#009e73": "#2bd0a0" }[hex.toLowerCase()] ?? hex;
}

/** A piece of line in the colour and stroke of a method, as SVG. */
export function swatch(color, dash = []) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("class", "swatch");
  svg.setAttribute("viewBox", "0 0 26 10");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(space, "line");
  const place = { x1: 0, x2: 26, y1: 5, y2: 5, stroke: colour(color), "stroke-width": 3,
    "stroke-dasharray": dash.join(" ") };
  for (const [name, value] of Object.entries(place)) line.setAttribute(name, value);
  svg.append(line);
  return svg;
}

/** A share from 0 to 1 as a bar. */
export function bar(share) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 100 10");
  svg.setAttribute("preserveAspectRatio", "none");
  const part = document.createElementNS(space, "rect");
  part.setAttribute("width", String(100 * Math.min(1, Math.max(0, share))));
  part.setAttribute("height", "10");
  part.setAttribute("fill", colour("#0072B2"));
  svg.append(part);
  return element("span", { class: "bar", "aria-hidden": "true" }, svg);
}

/** A select whose choice stays when its options change. */
export function fill(select, options, wanted) {
  const before = wanted ?? select.value;
  const same = [...select.options].map((o) => o.value + o.text).join("\n")
    === options.map(([value, text]) => value + text).join("\n");
  if (!same) select.replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
  if (options.some(([value]) => value === before)) select.value = before;
  return select.value;
}

export function table(head, rows) {
  const cell = (tag, content, i, extra = {}) => element(tag,
    { ...extra, ...(head[i].n ? { class: "n" } : {}) }, content);
  return element("table", {},
    element("thead", {}, element("tr", {}, ...head.map((h, i) => cell("th", h.text, i, { scope: "col" })))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((c, i) => cell("td", c, i))))));
}
