// Drawings: a density in two tones, and a prediction along a column with both bands.

import { svg, num, ticks, timeText, timeOf } from "./format.js";

const scale = (from, to) => (x) => to[0] + ((x - from[0]) / (from[1] - from[0])) * (to[1] - to[0]);
const points = (xs, ys) => xs.map((x, i) => `${x.toFixed(2)},${ys[i].toFixed(2)}`).join(" L");
const area = (xs, low, high) => `M${points(xs, high)} L${points([...xs].reverse(), [...low].reverse())}Z`;

/** The predictive density: all of it, and before it the noise alone. */
export function densityChart(width, prediction, format, target) {
  const { density, mean, lower, upper, level } = prediction;
  const height = 210;
  const [left, right, top, base] = [6, width - 6, 14, height - 52];
  const x = scale([density.y[0], density.y.at(-1)], [left, right]);
  const y = scale([0, Math.max(...density.total) * 1.04], [base, top]);
  const xs = density.y.map(x);
  const floor = xs.map(() => base);
  const inside = (value) => Math.min(right, Math.max(left, x(value)));
  const [a, b] = [inside(lower), inside(upper)];
  const at = base + 26;
  const chart = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, height, role: "img",
    "aria-label": `Density of ${target}: mean ${format(mean)}, ${Math.round(100 * level)} % between ${format(lower)} and ${format(upper)}`,
  });
  chart.append(
    svg("path", { class: "f-total", d: area(xs, floor, density.total.map(y)) }),
    svg("path", { class: "f-noise", d: area(xs, floor, density.noise.map(y)) }),
    svg("path", { class: "s-axis", d: `M${left},${base}H${right}` }),
  );
  for (const mark of ticks(density.y[0], density.y.at(-1), Math.max(3, width / 110))) {
    chart.append(
      svg("path", { class: "s-axis", d: `M${x(mark)},${base}v4` }),
      svg("text", { class: "middle", x: x(mark), y: base + 16 }, num(mark)),
    );
  }
  chart.append(
    svg("path", { class: "s-here", d: `M${x(mean)},${top - 4}V${base}` }),
    svg("path", { class: "s-bracket", d: `M${a},${at - 4}v8M${a},${at}H${b}M${b},${at - 4}v8` }),
    svg("circle", { class: "f-here", cx: x(mean), cy: at, r: 5 }),
  );
  const wide = b - a > 130;
  chart.append(
    svg("text", { class: wide ? "middle label" : "end label", x: wide ? Math.max(a, 24) : a + 2, y: at + 20 }, format(lower)),
    svg("text", { class: wide ? "middle label" : "label", x: wide ? Math.min(b, width - 24) : b - 2, y: at + 20 }, format(upper)),
  );
  return chart;
}

/** Where values of a column lie on an axis: numbers and times by size, others side by side. */
function axis(column, xs, span) {
  if (column.kind === "number" || column.kind === "time") {
    const value = column.kind === "time" ? (v) => timeOf(v, column.clock) : Number;
    const values = xs.map(value);
    const place = scale([values[0], values.at(-1)], span);
    return { at: values.map(place), place: (v) => place(value(v)), range: column.range.map(place), back: scale(span, [values[0], values.at(-1)]) };
  }
  const step = (span[1] - span[0]) / xs.length;
  const middle = (i) => span[0] + step * (i + 0.5);
  const index = (v) => xs.map(String).indexOf(String(v));
  return { at: xs.map((_, i) => middle(i)), place: (v) => middle(index(v)), step, back: (px) => xs[Math.max(0, Math.min(xs.length - 1, Math.floor((px - span[0]) / step)))] };
}

/**
 * A prediction along a column. `low` and `high` are the ends of the vertical axis, the same for all columns;
 * `here` is where the row is, and `choose` hears which value was selected.
 */
export function curveChart(width, column, curve, { low, high, here, choose, label }) {
  const height = 170;
  const [left, right, top, base] = [44, width - 8, 8, height - 24];
  const y = scale([low, high], [base, top]);
  const across = axis(column, curve.x, [left, right]);
  const clamp = (v) => Math.min(base, Math.max(top, y(v)));
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
  if (across.range) {
    chart.append(svg("rect", { class: "f-seen", x: across.range[0], y: top, width: Math.max(0, across.range[1] - across.range[0]), height: base - top }));
  }
  for (const mark of ticks(low, high, 4)) {
    chart.append(
      svg("path", { class: "s-axis", d: `M${left},${y(mark)}H${right}` }),
      svg("text", { class: "end", x: left - 6, y: y(mark) + 4 }, num(mark, 3)),
    );
  }
  if (across.step === undefined) {
    const band = (lower, upper, name) => svg("path", { class: name, d: area(across.at, lower.map(clamp), upper.map(clamp)) });
    chart.append(band(curve.lower, curve.upper, "f-band"));
    if (curve.noise_lower) chart.append(band(curve.noise_lower, curve.noise_upper, "f-noise-band"));
    chart.append(svg("path", { class: "s-mean", d: `M${points(across.at, curve.mean.map(clamp))}` }));
    const ends = column.kind === "time" ? column.range.map((ms) => timeText(ms, column.clock)) : null;
    if (ends) {
      chart.append(
        svg("text", { class: "middle", x: Math.max(across.range[0], left + 10), y: base + 17 }, ends[0]),
        svg("text", { class: "middle", x: Math.min(across.range[1], right - 26), y: base + 17 }, ends[1]),
      );
    } else {
      for (const mark of ticks(Number(curve.x[0]), Number(curve.x.at(-1)), Math.max(2, width / 85))) {
        if (column.integer && !Number.isInteger(mark)) continue;
        chart.append(svg("text", { class: "middle", x: across.place(mark), y: base + 17 }, num(mark)));
      }
    }
  } else {
    const bar = Math.min(26, across.step * 0.62);
    const box = (i, lower, upper, name) => svg("rect", {
      class: name, x: across.at[i] - bar / 2, width: bar, y: clamp(upper[i]), height: Math.max(1, clamp(lower[i]) - clamp(upper[i])), rx: 2,
    });
    const letters = Math.floor(across.step / 6.6);
    curve.x.forEach((value, i) => {
      chart.append(box(i, curve.lower, curve.upper, "f-band"));
      if (curve.noise_lower) chart.append(box(i, curve.noise_lower, curve.noise_upper, "f-noise-band"));
      chart.append(svg("path", { class: "s-mean", d: `M${across.at[i] - bar / 2},${clamp(curve.mean[i])}h${bar}` }));
      const text = String(value);
      if (letters >= 2) {
        chart.append(svg("text", { class: "middle", x: across.at[i], y: base + 17 }, text.length > letters ? `${text.slice(0, letters - 1)}…` : text));
      }
    });
  }
  if (here.value !== null && here.value !== undefined && Number.isFinite(here.mean)) {
    const px = across.place(here.value);
    if (Number.isFinite(px) && px >= left - 1 && px <= right + 1) {
      chart.append(
        svg("path", { class: "s-here", d: `M${px},${top}V${base}` }),
        svg("circle", { class: "f-here", cx: px, cy: clamp(here.mean), r: 5 }),
      );
    }
  }
  chart.addEventListener("click", (event) => {
    const box = chart.getBoundingClientRect();
    const px = ((event.clientX - box.left) / box.width) * width;
    const value = across.back(Math.min(right, Math.max(left, px)));
    choose(column.kind === "time" ? timeText(value, column.clock) : value);
  });
  return chart;
}
