// The page: which model, which row, and what is asked of the server when either changes.

import { el, num, plainTable } from "./format.js";
import { curveChart } from "./chart.js";
import { showDrivers } from "./drivers.js";
import { Form } from "./form.js";
import { showPrediction } from "./result.js";
import { tableOf } from "./table.js";

/** Pictures of columns that are drawn before somebody asks for more. */
const FEW = 12;

const byId = (id) => document.getElementById(id);
const state = { model: null, form: null, prediction: null, curves: null, of: null, all: false, order: null, figures: new Map() };

/** Ask the server; a problem that it names is thrown as one. */
async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer.");
  }
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    const error = new Error(problem.error ?? `The server answers ${answer.status}.`);
    error.column = problem.column;
    throw error;
  }
  return answer;
}

const askJson = async (path, options) => (await ask(path, options)).json();
const modelPath = (what) => `/api/models/${encodeURIComponent(state.model.name)}/${what}`;

function say(problem) {
  byId("alert").hidden = !problem;
  byId("alert").textContent = problem ? problem.message : "";
  state.form?.blame(problem?.column ?? null);
}

/** Run the newest of many calls: one at a time, and what came meanwhile only once. */
function latest(work) {
  let [running, again] = [false, false];
  return async function run() {
    if (running) { again = true; return; }
    running = true;
    do {
      again = false;
      try { await work(); } catch (error) { say(error); }
    } while (again);
    running = false;
  };
}

const request = (more = {}) => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ row: state.form.row(), level: Number(byId("level").value), of: state.of ?? undefined, ...more }),
});

const target = () => state.model.targets[state.model.task === "classification" ? 0 : state.of ?? 0];

const predict = latest(async () => {
  const model = state.model;
  const prediction = await askJson(modelPath("row"), request());
  if (model !== state.model) return;
  say(null);
  state.prediction = prediction;
  const sentence = showPrediction(model, target(), prediction);
  clearTimeout(state.speaking);
  state.speaking = setTimeout(() => { byId("status").textContent = sentence; }, 500);
});

const drawCurves = latest(async () => {
  const model = state.model;
  const columns = model.columns.filter((column) => column.kind !== "text");
  const some = state.all || columns.length <= 2 * FEW ? columns : columns.slice(0, 2 * FEW);
  const answer = await askJson(modelPath("curves"), request({ columns: some.map((column) => column.name) }));
  if (model !== state.model) return;
  state.curves = answer;
  showCurves();
});

const drawDrivers = latest(async () => {
  const model = state.model;
  try {
    const answer = await askJson(modelPath("drivers"), request());
    if (model === state.model) showDrivers(model, target(), answer);
  } catch {
    // What is wrong with the row is said already; a model without attributions has none to show.
    byId("drivers").hidden = true;
  }
});

/** How far a prediction moves along a column, where training rows lie. */
function effect(column, curve) {
  const inside = curve.mean.filter((_, i) => {
    const x = curve.x[i];
    return column.kind !== "number" || (x >= column.range[0] && x <= column.range[1]);
  });
  return Math.max(...inside) - Math.min(...inside);
}

function showCurves() {
  const { model, form, prediction } = state;
  const isClasses = model.task === "classification";
  const columns = new Map(model.columns.map((column) => [column.name, column]));
  const all = state.curves.curves.map((curve) => ({ curve, column: columns.get(curve.column) }));
  // Pictures keep their places while values change; those that matter most come first.
  if (!state.order) {
    all.sort((a, b) => effect(b.column, b.curve) - effect(a.column, a.curve));
    state.order = all.slice(0, state.all ? all.length : FEW).map(({ column }) => column.name);
    const drawn = model.columns.filter((column) => column.kind !== "text").length;
    byId("more-curves").hidden = state.all || drawn <= FEW;
    byId("more-curves").textContent = `Show ${drawn - FEW} more columns`;
    state.figures = new Map(state.order.map((name) => [name, new Figure(name)]));
    byId("curve-list").replaceChildren(...state.order.map((name) => state.figures.get(name).element));
  }
  const [low, high] = isClasses ? [0, 1] : verticalEnds(all);
  const what = isClasses ? `Probability of ${model.classes[state.curves.of]}` : target();
  byId("curves-title").textContent = isClasses ? `${what} along each column` : "Along each column";
  const mean = isClasses ? prediction?.probabilities[state.curves.of] : prediction?.mean;
  const values = form.row();
  for (const { curve, column } of all) {
    const figure = state.figures.get(column.name);
    if (!figure) continue;
    const label = `${what} along ${column.name}: from ${num(Math.min(...curve.mean))} to ${num(Math.max(...curve.mean))}`;
    const choose = (value) => { form.set(column.name, value); changed(); };
    const width = Math.max(220, figure.element.clientWidth);
    figure.show(curve, curveChart(width, column, curve, { low, high, here: { value: values[column.name], mean }, choose, label }));
  }
}

/** A picture of a column, with its numbers for those who want them. */
class Figure {
  constructor(name) {
    this.name = name;
    this.drawing = el("div");
    this.numbers = el("div", { class: "scroll" });
    this.details = el("details", { ontoggle: () => this.fill() }, el("summary", {}, "Numbers"), this.numbers);
    this.element = el("figure", {}, el("figcaption", { title: name }, name), this.drawing, this.details);
  }

  show(curve, drawing) {
    this.curve = curve;
    this.drawing.replaceChildren(drawing);
    this.fill();
  }

  fill() {
    if (!this.details.open) return;
    const { x, mean, lower, upper } = this.curve;
    const rows = x.map((value, i) => [typeof value === "number" ? num(value) : String(value), num(mean[i]), num(lower[i]), num(upper[i])]);
    this.numbers.replaceChildren(plainTable([this.name, "mean", "lower", "upper"], rows, `Prediction along ${this.name}`));
  }
}

/** The value below which a share `p` of the values lies. */
function quantile(values, p) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.round(p * (sorted.length - 1))];
}

/**
 * The same ends for all pictures: all means, and the bands within the training range but for the widest tenth, which would
 * hide how the mean runs.
 */
function verticalEnds(ranked) {
  const means = ranked.flatMap(({ curve }) => curve.mean);
  const inside = ranked.flatMap(({ curve, column }) => curve.lower.map((lower, i) => [lower, curve.upper[i], curve.x[i]])
    .filter(([, , x]) => column.kind !== "number" || (x >= column.range[0] && x <= column.range[1])));
  if (!inside.length) inside.push(...means.map((mean) => [mean, mean]));
  const low = Math.min(...means, quantile(inside.map(([lower]) => lower), 0.05));
  const high = Math.max(...means, quantile(inside.map(([, upper]) => upper), 0.95));
  const room = 0.04 * (high - low || 1);
  return [low - room, high + room];
}

/** What is in the address: model, level, target or class, and the values that are not typical. */
function writeLink() {
  const query = new URLSearchParams();
  query.set("model", state.model.name);
  if (byId("level").value !== "0.9") query.set("level", byId("level").value);
  if (state.of !== null) query.set("of", state.of);
  for (const column of state.model.columns) {
    if (!state.form.isTypical(column)) query.set(`c.${column.name}`, state.form.values[column.name] ?? "");
  }
  history.replaceState(null, "", `#${query}`);
}

function readLink() {
  const query = new URLSearchParams(location.hash.slice(1));
  return { model: query.get("model"), level: query.get("level"), of: query.get("of"), values: [...query].filter(([key]) => key.startsWith("c.")) };
}

let pause;
/** A value has changed: the prediction follows at once, the pictures after a moment. */
function changed() {
  predict();
  clearTimeout(pause);
  pause = setTimeout(() => { writeLink(); drawCurves(); drawDrivers(); }, 80);
}

function showLegend() {
  const isClasses = state.model.task === "classification";
  const item = (kind, text) => el("li", {}, el("i", { class: `swatch ${kind}` }), text);
  byId("legend").replaceChildren(
    item("mean", isClasses ? "probability" : "mean"),
    ...(isClasses ? [item("ignorance-soft", "± its deviation (ignorance)")] : [item("noise-soft", "noise"), item("ignorance-soft", "what ignorance adds")]),
    item("seen", "training range"),
  );
}

async function choose(name, link = {}) {
  const next = await askJson(`/api/models/${encodeURIComponent(name)}`);
  // What is known of the model before says nothing of this one.
  Object.assign(state, { model: next, prediction: null, curves: null, of: null, all: false, order: null });
  const { model } = state;
  const isClasses = model.task === "classification";
  document.title = `${model.targets.join(", ")} · ${model.name}`;
  byId("title").textContent = model.targets.join(", ");
  const rows = model.rows ? ` from ${model.rows.toLocaleString("en")} rows` : "";
  byId("about").textContent = `${model.name}: ${isClasses ? `${model.classes.length} classes` : "a number"}, learned${rows}${model.data ? ` of ${model.data}` : ""} by ${model.networks} network${model.networks === 1 ? "" : "s"}`;
  byId("version").textContent = `version ${model.version}`;
  const options = isClasses ? model.classes : model.targets;
  byId("of-choice").hidden = options.length < 2;
  byId("of-label").textContent = isClasses ? "Curves of" : "Target";
  byId("of").replaceChildren(...(isClasses ? [el("option", { value: "" }, "the likeliest class")] : []),
    ...options.map((text, k) => el("option", { value: k }, text)));
  byId("level-choice").hidden = isClasses;
  if (link.of !== null && link.of !== undefined && Number(link.of) < options.length) {
    state.of = Number(link.of);
    byId("of").value = link.of;
  }
  if (link.level && [...byId("level").options].some((option) => option.value === link.level)) byId("level").value = link.level;
  byId("curve-list").replaceChildren();
  byId("table-result").replaceChildren();
  state.form = new Form(byId("form"), model.columns, changed);
  for (const [key, value] of link.values ?? []) state.form.set(key.slice(2), value === "" ? null : value);
  showLegend();
  await predict();
  await drawCurves();
  writeLink();
  await drawDrivers();
}

async function start() {
  const { models } = await askJson("/api/models");
  const link = readLink();
  const names = models.map((model) => model.name);
  byId("model").replaceChildren(...names.map((name) => el("option", { value: name }, name)));
  byId("model-choice").hidden = names.length < 2;
  const first = names.includes(link.model) ? link.model : names[0];
  byId("model").value = first;
  byId("model").addEventListener("change", () => choose(byId("model").value).catch(say));
  byId("of").addEventListener("change", () => { state.of = byId("of").value === "" ? null : Number(byId("of").value); state.order = null; changed(); });
  byId("level").addEventListener("change", changed);
  byId("reset").addEventListener("click", () => { state.form.reset(); changed(); });
  byId("more-curves").addEventListener("click", () => { Object.assign(state, { all: true, order: null }); drawCurves(); });
  byId("share").addEventListener("click", share);
  window.addEventListener("hashchange", () => {
    const next = readLink();
    if (names.includes(next.model)) choose(next.model, next).catch(say);
  });
  let resizing;
  new ResizeObserver(() => {
    clearTimeout(resizing);
    resizing = setTimeout(() => {
      if (state.prediction) showPrediction(state.model, target(), state.prediction);
      if (state.curves) showCurves();
    }, 100);
  }).observe(document.querySelector("main"));
  tableOf(() => state.model,
    (format, body) => ask(`${modelPath("table")}?format=${format}&level=${byId("level").value}`, { method: "POST", headers: { "content-type": "text/csv" }, body }),
    (row) => {
      for (const [name, value] of Object.entries(row)) state.form.set(name, value);
      changed();
      byId("prediction").scrollIntoView({ block: "nearest" });
      byId("prediction").focus();
    });
  await choose(first, link);
}

async function share() {
  writeLink();
  const button = byId("share");
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = "Copied";
  } catch {
    button.textContent = "It is in the address bar";
  }
  setTimeout(() => { button.textContent = "Copy link"; }, 2000);
}

start().catch(say);
