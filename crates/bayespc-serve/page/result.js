// What the model says of a row.

import { el, svg, num, like, percent, plainTable } from "./format.js";
import { densityChart } from "./chart.js";

/** Shares of the variance, or of the entropy, that are noise and ignorance. */
export function shares(prediction) {
  const [noise, ignorance] = prediction.probabilities
    ? [prediction.aleatoric_entropy, prediction.epistemic_entropy]
    : [prediction.aleatoric_std ** 2, prediction.epistemic_std ** 2];
  const total = noise + ignorance;
  return total > 0 ? [noise / total, ignorance / total] : [0, 0];
}

/** What follows from them, in a sentence. */
function verdict(prediction) {
  const [, ignorance] = shares(prediction);
  if (prediction.ood_score > 2) return "Far from the training rows: do not rely on this.";
  if (prediction.probabilities && prediction.ood_score <= 1 && Math.max(...prediction.probabilities) > 0.95) return "Nearly certain.";
  if (ignorance > 0.5) return "Mostly ignorance: more training rows like this one would help.";
  if (ignorance > 0.2) return "Noise and ignorance: more training rows like this one would help a little.";
  return "Mostly noise: more training rows would hardly help; better columns would.";
}

/** Draw everything about a prediction; gives a sentence for those who cannot see it. */
export function showPrediction(model, target, prediction) {
  const sentence = prediction.probabilities ? showClasses(model, prediction) : showValue(target, prediction);
  showParts(prediction);
  showUnlike(prediction.ood_score);
  return sentence;
}

function byId(id) {
  return document.getElementById(id);
}

function showValue(target, prediction) {
  const format = like(prediction.std);
  const { mean, lower, upper, level } = prediction;
  const interval = `${percent(level)} between ${format(lower)} and ${format(upper)}`;
  byId("headline").replaceChildren(
    el("span", { class: "value", id: "mean" }, format(mean)),
    el("span", { class: "interval", id: "interval" }, interval),
    el("p", { class: "verdict" }, verdict(prediction)),
  );
  const shape = byId("shape");
  shape.replaceChildren(prediction.density
    ? densityChart(shape.clientWidth, prediction, format, target)
    : el("p", { class: "quiet" }, "The prediction is a point: it has no density."));
  byId("numbers-table").replaceChildren(plainTable(["", target], [
    ["mean", num(mean, 6)],
    ["standard deviation", num(prediction.std, 6)],
    ["noise (aleatoric)", num(prediction.aleatoric_std, 6)],
    ["ignorance (epistemic)", num(prediction.epistemic_std, 6)],
    [`lower end, ${percent(level)}`, num(lower, 6)],
    [`upper end, ${percent(level)}`, num(upper, 6)],
    ["unlike the training rows", num(prediction.ood_score, 4)],
  ], "The prediction in numbers"));
  return `${target}: ${format(mean)}, ${interval}. ${verdict(prediction)}`;
}

const SHOWN = 12;

function showClasses(model, prediction) {
  const { probabilities, probability_std: spread } = prediction;
  const order = probabilities.map((_, k) => k).sort((a, b) => probabilities[b] - probabilities[a]);
  const [first] = order;
  const name = model.classes[first];
  byId("headline").replaceChildren(
    el("span", { class: "value", id: "mean" }, name),
    el("span", { class: "interval", id: "interval" }, `with probability ${probabilities[first].toFixed(3)} ± ${spread[first].toFixed(3)}`),
    el("p", { class: "verdict" }, verdict(prediction)),
  );
  const line = (k) => {
    const p = probabilities[k];
    const [low, high] = [Math.max(0, p - spread[k]), Math.min(1, p + spread[k])];
    const drawing = svg("svg", { viewBox: "0 0 100 16", height: 16, preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { class: "f-seen", x: 0, y: 2, width: 100, height: 12 }),
      svg("rect", { class: "f-noise", x: 0, y: 2, width: 100 * p, height: 12 }),
      svg("rect", { class: "f-total", x: 100 * low, y: 6, width: Math.max(0.3, 100 * (high - low)), height: 4 }));
    return el("div", { class: k === first ? "first" : "" },
      el("span", { class: "name" }, model.classes[k]), drawing, el("span", { class: "of" }, `${p.toFixed(3)} ± ${spread[k].toFixed(3)}`));
  };
  const more = order.length > SHOWN ? el("p", { class: "quiet small" }, `and ${order.length - SHOWN} less likely classes`) : null;
  byId("shape").replaceChildren(el("div", { class: "classes" }, ...order.slice(0, SHOWN).map(line)), ...(more ? [more] : []));
  byId("numbers-table").replaceChildren(plainTable(["", "probability", "its deviation"],
    order.map((k) => [model.classes[k], num(probabilities[k], 6), num(spread[k], 4)]), "Probabilities of the classes"));
  return `${model.targets[0]}: ${name}, probability ${probabilities[first].toFixed(2)}. ${verdict(prediction)}`;
}

/** A bar of two parts. */
export function splitBar([noise, ignorance]) {
  const part = (share, kind) => {
    const i = el("i", { class: kind });
    i.style.setProperty("width", `${100 * share}%`);
    return i;
  };
  return el("div", { class: "split", "aria-hidden": "true" }, part(noise, "noise"), part(ignorance, "ignorance"));
}

function showParts(prediction) {
  const parts = shares(prediction);
  const of = prediction.probabilities ? "uncertainty (entropy)" : "variance";
  const item = (kind, text, share) => el("li", {}, el("i", { class: `swatch ${kind}` }), `${text} ${percent(share)}`);
  byId("parts").replaceChildren(
    el("h3", {}, `Where the ${of} comes from`),
    splitBar(parts),
    el("ul", { class: "legend" }, item("noise", "noise (aleatoric)", parts[0]), item("ignorance", "ignorance (epistemic)", parts[1])),
  );
}

function showUnlike(score) {
  const marker = el("i");
  marker.style.setProperty("left", `${(100 * Math.min(score, 3)) / 3}%`);
  const words = score <= 1 ? "like the training rows" : score <= 2 ? "unlike most training rows" : "far from the training rows";
  byId("unlike").replaceChildren(
    el("h3", {}, `How unlike the training rows: ${num(score, 3)}`, el("span", { class: "quiet" }, ` · ${words}`)),
    el("div", { class: "meter", "aria-hidden": "true" }, marker),
    el("div", { class: "marks", "aria-hidden": "true" }, el("span", {}, "like them"), el("span", {}, "1", el("span", { class: "more" }, " · one in twenty is beyond")), el("span", {}, "2 · far")),
  );
}
