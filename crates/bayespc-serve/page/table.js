// A table of rows from a file, least sure first.

import { el, num } from "./format.js";
import { splitBar } from "./result.js";

/** Wire up the file control. `ask(format, body)` asks the server, `open(row)` shows a row in the form. */
export function tableOf(getModel, ask, open) {
  const [drop, file, alert, result] = ["drop", "file", "table-alert", "table-result"].map((id) => document.getElementById(id));

  async function read(chosen) {
    alert.hidden = true;
    result.replaceChildren(el("p", { class: "quiet", role: "status" }, `Predicting ${chosen.name} …`));
    const body = await chosen.arrayBuffer();
    try {
      const answer = await (await ask("json", body)).json();
      show(getModel(), answer, chosen.name, body);
    } catch (error) {
      result.replaceChildren();
      alert.textContent = `${chosen.name}: ${error.message}`;
      alert.hidden = false;
    }
  }

  file.addEventListener("change", () => {
    if (file.files.length) read(file.files[0]);
    // The same file again, perhaps corrected, is a change too.
    file.value = "";
  });
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files.length) read(event.dataTransfer.files[0]);
  });

  async function download(name, body) {
    const answer = await ask("csv", body);
    const link = el("a", { href: URL.createObjectURL(await answer.blob()), download: `${name.replace(/\.[^.]*$/, "")}-predictions.csv` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function show(model, answer, name, body) {
    const isClasses = model.task === "classification";
    const quantities = answer.quantities.filter((title) => !title.startsWith("probability_") && !title.startsWith("aleatoric_entropy"));
    const shown = answer.columns.slice(0, 6);
    const heading = [["row", (line) => line.row], ...quantities.map((title) => [title, (line) => line.prediction[title]]),
      ...shown.map((column, k) => [column, (line) => line.cells[k]])];
    let [by, way] = [heading.findIndex(([title]) => title === answer.sorted_by || title.endsWith(`_${answer.sorted_by}`)), -1];
    // The bar of both parts stands between the quantities and the row's own cells.
    const before = 1 + quantities.length;
    let lines = answer.least_sure;
    const isText = (k) => lines.some((line) => typeof heading[k][1](line) === "string");
    const rows = el("tbody");
    const heads = heading.map(([title], k) => el("th", { scope: "col", class: isText(k) ? "text" : null }, el("button", {
      type: "button", onclick: () => { way = by === k ? -way : -1; by = k; sort(); },
    }, words(title))));
    function sort() {
      const key = heading[by][1];
      lines = [...lines].sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        return way * (typeof x === "number" && typeof y === "number" ? x - y : String(x ?? "").localeCompare(String(y ?? "")));
      });
      heads.forEach((th, k) => { if (k === by) th.setAttribute("aria-sort", way < 0 ? "descending" : "ascending"); else th.removeAttribute("aria-sort"); });
      rows.replaceChildren(...lines.map((line) => el("tr", {},
        ...heading.slice(0, before).map(([, value], k) => cell(value(line), k, line)),
        el("td", {}, bar(line)),
        ...heading.slice(before).map(([, value]) => cell(value(line), before, line)))));
    }
    function bar({ prediction }) {
      if (isClasses) {
        const total = prediction.entropy || 1;
        return splitBar([prediction.aleatoric_entropy / total, prediction.epistemic_entropy / total]);
      }
      const of = (kind) => Object.entries(prediction).filter(([title]) => title.endsWith(kind)).reduce((sum, [, x]) => sum + x * x, 0);
      const [a, e] = [of("aleatoric_std"), of("epistemic_std")];
      return splitBar([a / (a + e || 1), e / (a + e || 1)]);
    }
    function cell(value, k, line) {
      if (k === 0) {
        const load = () => open(Object.fromEntries(answer.columns.map((column, c) => [column, line.cells[c]])));
        return el("td", {}, el("button", { type: "button", onclick: load, "aria-label": `Show row ${value} above` }, String(value)));
      }
      if (typeof value === "number") return el("td", {}, num(value));
      return el("td", { class: "text" }, value === null || value === undefined ? "–" : String(value));
    }
    sort();
    const kept = lines.length < answer.rows ? `the ${lines.length} least sure of ${answer.rows} rows` : `${answer.rows} rows`;
    const notes = answer.warnings.map((warning) => el("p", { class: "small quiet" }, warning));
    result.replaceChildren(
      el("div", { class: "section-head" },
        el("p", { role: "status" }, `${name}: ${kept}, least sure first. Select a row’s number to look at it.`),
        el("button", { type: "button", onclick: () => download(name, body) }, "Download all as CSV")),
      ...notes,
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Predictions" },
        el("table", {}, el("caption", { class: "unseen" }, "Predictions, least sure first"),
          el("thead", {}, el("tr", {}, ...heads.slice(0, before), el("th", { scope: "col" }, "noise | ignorance"), ...heads.slice(before))), rows)),
    );
  }
}

const WORDS = { std: "deviation", aleatoric_std: "noise", epistemic_std: "ignorance", ood_score: "unlike", epistemic_entropy: "ignorance" };

/** What people call a quantity. */
function words(title) {
  return WORDS[title] ?? title;
}
