// The form of a row: a control for each column, with what its values were in training.

import { el, num, timeText, timeOf } from "./format.js";

/** How far beyond the training range a slider goes, in its length. */
const BEYOND = 0.25;

export class Form {
  /** Fill `place` with controls for `columns`; `changed` hears of every change. */
  constructor(place, columns, changed) {
    this.columns = columns;
    this.changed = changed;
    this.values = {};
    this.fields = new Map();
    place.replaceChildren(...columns.map((column, i) => this.field(column, `column-${i}`)));
    place.addEventListener("submit", (event) => event.preventDefault());
    this.reset();
  }

  /** The row as a request has it. */
  row() {
    return { ...this.values };
  }

  /** Whether a value is the typical one. */
  isTypical(column) {
    return this.values[column.name] === column.typical;
  }

  reset() {
    for (const column of this.columns) this.show(column, column.typical);
  }

  /** Take a value from elsewhere; null is a missing one. */
  set(name, value) {
    const column = this.columns.find((other) => other.name === name);
    if (!column) return;
    let read = value;
    if (column.kind === "number") {
      read = value === null || value === "" ? null : Number(value);
      if (Number.isNaN(read)) read = null;
      else if (read !== null) read = rounded(column, read);
    }
    if (column.kind === "bool" && value !== null) read = value === true || value === "true";
    this.show(column, read);
  }

  /** Mark the control of a column as wrong, or none. */
  blame(name) {
    for (const [column, field] of this.fields) field.input.setAttribute("aria-invalid", String(column === name));
  }

  show(column, value) {
    this.values[column.name] = value;
    const { input, slider, outside } = this.fields.get(column.name);
    input.value = value === null || value === undefined ? "" : String(value);
    if (slider) this.slide(column, slider, value);
    if (outside) this.sayOutside(column, outside, value);
  }

  slide(column, slider, value) {
    const place = column.kind === "time" ? timeOf(value, column.clock) : value;
    if (Number.isFinite(place) && place !== null) slider.value = place;
    slider.setAttribute("aria-valuetext", value === null ? "missing" : String(value));
  }

  sayOutside(column, outside, value) {
    const place = column.kind === "time" ? timeOf(value, column.clock) : value;
    const [low, high] = column.range;
    const isOutside = column.seen !== false && value !== null && Number.isFinite(place) && (place < low || place > high);
    outside.hidden = !isOutside;
    if (isOutside) {
      const text = (x) => (column.kind === "time" ? timeText(x, column.clock) : num(x));
      outside.textContent = `Outside the training range, ${text(low)} to ${text(high)}`;
    }
  }

  field(column, id) {
    const label = el("label", { for: id }, column.name);
    if (column.kind === "number" || column.kind === "time") return this.slidable(column, id, label);
    const change = (event) => {
      const text = event.target.value;
      let value = text === "" && column.kind !== "text" ? null : text;
      if (column.kind === "bool" && value !== null) value = value === "true";
      this.values[column.name] = value;
      this.changed(column.name);
    };
    let input;
    if (column.kind === "text") {
      input = el("input", { id, type: "text", oninput: change });
    } else {
      const options = column.kind === "bool"
        ? [["false", "false"], ["true", "true"]]
        : column.values.map(({ value, share }) => [value, share === undefined ? `${value} (rare)` : value]);
      input = el("select", { id, onchange: change },
        ...options.map(([value, text]) => el("option", { value }, text)),
        el("option", { value: "" }, "missing"));
    }
    this.fields.set(column.name, { input });
    return el("div", { class: "field long" }, label, input);
  }

  slidable(column, id, label) {
    const isTime = column.kind === "time";
    const [low, high] = column.range;
    const span = high - low;
    const beyond = isTime && column.clock ? 0 : BEYOND * span;
    let [from, to] = [low - beyond, high + beyond];
    if (column.integer) [from, to] = [Math.floor(from), Math.ceil(to)];
    const outside = el("p", { class: "outside", hidden: true, id: `${id}-outside` });
    const typed = (event) => {
      const text = event.target.value.trim();
      const value = text === "" ? null : isTime ? text : Number(text);
      this.values[column.name] = value;
      this.slide(column, slider, value);
      this.sayOutside(column, outside, value);
      this.changed(column.name);
    };
    const input = el("input", isTime
      ? { id, type: "text", oninput: typed, "aria-describedby": `${id}-outside` }
      : { id, type: "number", step: "any", oninput: typed, "aria-describedby": `${id}-outside`, placeholder: "missing" });
    const slid = (event) => {
      const place = Number(event.target.value);
      const value = isTime ? timeText(Math.round(place / 60000) * 60000, column.clock) : rounded(column, place);
      this.values[column.name] = value;
      input.value = String(value);
      this.slide(column, slider, value);
      this.sayOutside(column, outside, value);
      this.changed(column.name);
    };
    const step = column.integer ? 1 : isTime ? 60000 : "any";
    const slider = el("input", { type: "range", min: from, max: to, step, "aria-label": `${column.name}, slider`, oninput: slid });
    if (!column.integer && !isTime) {
      // Arrow keys move by a two-hundredth, since the step of a slider without one is up to the browser.
      slider.addEventListener("keydown", (event) => {
        const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
        if (!way) return;
        event.preventDefault();
        slider.value = Number(slider.value) + (way * (to - from)) / 200;
        slid({ target: slider });
      });
    }
    const part = (a, b, name) => {
      const shade = el("i", { class: name });
      shade.style.setProperty("left", `${(100 * (a - from)) / (to - from)}%`);
      shade.style.setProperty("width", `${(100 * (b - a)) / (to - from)}%`);
      return shade;
    };
    const shades = [el("i", { class: "ground" }), part(low, high, "seen")];
    if (column.usual) shades.push(part(...column.usual, "often"));
    this.fields.set(column.name, { input, slider, outside });
    return el("div", { class: isTime ? "field long" : "field" }, label, input, el("div", { class: "slider" }, el("div", { class: "shades" }, ...shades), slider), outside);
  }
}

/** A number of a slider or a picture, in as many digits as its range needs. */
function rounded(column, x) {
  if (column.integer) return Math.round(x);
  const [low, high] = column.range;
  const unit = 10 ** (Math.floor(Math.log10(high - low)) - 3);
  return Number((Math.round(x / unit) * unit).toPrecision(12));
}
