// Numbers and elements as this page writes them.

/** A number in so many significant digits, without an exponent unless it is very large or small. */
export function num(x, digits = 4) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e7 || size < 1e-4) return x.toExponential(Math.max(0, digits - 2)).replace("e+", "e").replace("-", "−");
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  const text = x.toFixed(Math.min(decimals, 12));
  const short = text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  return short.replace("-", "−");
}

/** Numbers that stand side by side, with as many decimals as their spread needs. */
export function like(spread) {
  const decimals = Math.min(10, Math.max(0, 2 - Math.floor(Math.log10(spread || 1))));
  return (x) => {
    if (!Number.isFinite(x)) return "–";
    if (Math.abs(x) >= 1e7 || (spread > 0 && spread < 1e-6)) return num(x);
    return x.toFixed(decimals).replace("-", "−");
  };
}

export function percent(share) {
  const p = 100 * share;
  if (p > 0 && p < 1) return "< 1 %";
  return `${Math.round(p)} %`;
}

/** An element with attributes, properties that begin with a dot, listeners that begin with `on`, and children. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  assign(element, attributes);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** The same for a drawing. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  assign(element, attributes);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function assign(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith(".")) element[name.slice(1)] = value;
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
}

/** A table of a heading and rows of texts. */
export function plainTable(heading, rows, caption) {
  return el("table", {},
    caption ? el("caption", { class: "unseen" }, caption) : null,
    el("thead", {}, el("tr", {}, ...heading.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell, i) =>
      i === 0 ? el("th", { scope: "row", class: "text" }, cell) : el("td", {}, cell))))));
}

/** Round places between two ends for the marks of an axis. */
export function ticks(low, high, about) {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return [low];
  const rough = span / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const marks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * span; i += 1) marks.push(i * step);
  return marks;
}

/** Milliseconds since 1970 as ISO 8601 without what is zero; times of day alone for a clock. */
export function timeText(ms, clock) {
  const iso = new Date(ms).toISOString();
  if (clock) return iso.slice(11, 19);
  return iso.slice(11, 19) === "00:00:00" ? iso.slice(0, 10) : iso.slice(0, 16);
}

export function timeOf(text, clock) {
  if (!text) return NaN;
  const stamp = clock ? `1970-01-01T${text}Z` : /[zZ]|[+-]\d\d:?\d\d$/.test(text) || text.length <= 10 ? text : `${text}Z`;
  return Date.parse(stamp);
}
