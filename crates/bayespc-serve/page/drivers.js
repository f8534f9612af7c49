// Which columns make the prediction what it is.

import { el, num } from "./format.js";

/** Columns that are named; the others are summed up. */
const NAMED = 7;

const byId = (id) => document.getElementById(id);

export function showDrivers(model, target, { of, drivers }) {
  const isClasses = model.task === "classification";
  const what = {
    mean: isClasses ? `The probability of ${model.classes[of]}` : `The mean of ${target}`,
    aleatoric: "The noise",
    epistemic: "The ignorance",
  };
  const kind = { mean: "", aleatoric: "noise", epistemic: "ignorance" };
  byId("drivers").hidden = drivers.length === 0;
  byId("drivers-text").textContent = "What each column adds or takes away, from the average training row to this one; the parts add up.";
  byId("drivers-lists").replaceChildren(...drivers.map((driver) => list(driver, what[driver.quantity], kind[driver.quantity], isClasses ? "entropy" : "variance")));
}

function list({ quantity, base, total, columns }, title, kind, unit) {
  const named = columns.slice(0, columns.length > NAMED + 1 ? NAMED : NAMED + 1);
  const rest = columns.slice(named.length).reduce((sum, { value }) => sum + value, 0);
  const parts = columns.length > named.length ? [...named, { column: `${columns.length - named.length} others`, value: rest }] : named;
  const largest = Math.max(...parts.map(({ value }) => Math.abs(value)), Number.MIN_VALUE);
  const of = quantity === "mean" ? "" : `${unit} `;
  const swatch = kind ? el("i", { class: `swatch ${kind}` }) : null;
  return el("div", {},
    el("h3", {}, swatch, title),
    el("p", { class: "quiet small" }, `${of}${num(base)} on the average row, ${num(total)} here`),
    el("ul", { class: "bars" }, ...parts.map(({ column, value }) => item(column, value, largest, kind))));
}

function item(column, value, largest, kind) {
  const bar = el("i");
  const width = (50 * Math.abs(value)) / largest;
  bar.style.setProperty("width", `${width}%`);
  bar.style.setProperty("left", `${value < 0 ? 50 - width : 50}%`);
  return el("li", {},
    el("span", { class: "name", title: column }, column),
    el("span", { class: `bar ${kind}`, "aria-hidden": "true" }, bar),
    el("span", { class: "amount" }, `${value > 0 ? "+" : ""}${num(value, 3)}`));
}
