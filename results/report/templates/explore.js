"use strict";

// The interactive charts. One state says what is kept; every chart, the counts and the inputs are drawn from it.
const found = JSON.parse(document.getElementById("explore-data").textContent);
const MOST_DRAWN = 3000; // marks of a chart: of more cases, evenly many are drawn, and all are counted
const MOST_IN_SVG = 1200;
const VERDICTS = { g: "helps", h: "harms", e: "no difference", u: "undecided" };
const VERDICT_COLORS = { g: "--helps", h: "--harms", e: "--equal", u: "--strong" }; // of the page's style
const SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left"]; // of variants
const SIGNS = ["●", "■", "▲", "◆", "✚", "▼", "▶", "◀"];
const ROUND = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100];
const part = document.getElementById("explore");
const counts = document.getElementById("explore-counts");
const chosenPanel = document.getElementById("explore-chosen");

const state = {
  metric: 0,
  variants: new Set(found.arms.map((arm) => arm.variant)),
  workloads: new Set(found.workloads.keys()),
  verdicts: new Set(Object.keys(VERDICTS)),
  ranges: new Map(), // of a factor: [low, high], or the set of its words that are kept
  chosen: null,
};
let rows = []; // of the metric: all cases
let kept = []; // of them: those that pass every filter, sorted by their ratio
let views = []; // { view, factor }
let drawing = 0;

function armOf(variant) {
  return found.arms.find((arm) => arm.variant === variant);
}

function text(value) {
  return typeof value === "number" ? String(Number(value.toPrecision(4))) : (value ?? "–");
}

// A ratio and its interval in the digits that the interval allows, as the tables have them.
function ratioText(row) {
  const half = (row.high - row.low) / 2;
  const places = row.low === null || !Number.isFinite(half) ? 2 : [5, 0.5, 0.005, 0].findIndex((least) => half >= least);
  const shown = (value) => (typeof value === "number" ? value.toFixed(places) : (value ?? "–"));
  return row.low === null ? shown(row.ratio) : `${shown(row.ratio)} [${shown(row.low)}, ${shown(row.high)}]`;
}

function networkText(point) {
  const parts = found.factors.map((factor) => `${factor.label} ${text(factor.values[point])}`);
  return `network ${point}: ${parts.join(", ")}`;
}

function rowsOf(metric) {
  return metric.point.map((point, n) => ({
    n,
    point,
    variant: metric.variant[n],
    workload: metric.workload[n],
    ratio: metric.ratio[n],
    low: metric.low[n],
    high: metric.high[n],
    baseline: metric.baseline[n],
    verdict: metric.verdict[n],
  }));
}

function number(value) {
  return { "∞": Infinity, "-∞": -Infinity }[value] ?? value;
}

// Whether a case passes the filters; those of the factor `but` are left out.
function passes(row, but = -1) {
  if (!state.variants.has(row.variant) || !state.workloads.has(row.workload) || !state.verdicts.has(row.verdict)) return false;
  for (const [factor, range] of state.ranges) {
    const value = found.factors[factor].values[row.point];
    if (factor !== but && !(range instanceof Set ? range.has(value) : value >= range[0] && value <= range[1])) return false;
  }
  return true;
}

// ---- what is written beside the charts

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function boxes(legend, values, names, set, colors = []) {
  const group = element("fieldset", {}, element("legend", {}, legend));
  values.forEach((value, n) => {
    const input = element("input", { type: "checkbox", checked: set.has(value) });
    input.addEventListener("change", () => {
      if (input.checked) set.add(value);
      else set.delete(value);
      update();
    });
    const label = element("label", {}, input, names[n]);
    if (colors[n]) label.style.borderBottom = `3px solid ${colors[n]}`;
    group.append(label);
  });
  return group;
}

function rangeInputs(factor, number) {
  const numbers = factor.values;
  const bounds = [Math.min(...numbers), Math.max(...numbers)];
  const group = element("fieldset", {}, element("legend", {}, factor.label));
  const inputs = ["from", "to"].map((word, side) => {
    const input = element("input", { type: "number", step: "any", value: bounds[side] });
    input.setAttribute("aria-label", `${factor.label} ${word}`);
    input.addEventListener("change", () => {
      const range = inputs.map((each, n) => (each.value === "" ? bounds[n] : Number(each.value)));
      keep(number, range[0] <= bounds[0] && range[1] >= bounds[1] ? null : range);
    });
    return input;
  });
  factor.show = () => {
    const range = state.ranges.get(number) ?? bounds;
    inputs.forEach((input, side) => (input.value = Number(range[side].toPrecision(4))));
  };
  const all = element("button", { type: "button" }, "all");
  all.setAttribute("aria-label", `all of ${factor.label}`);
  all.addEventListener("click", () => keep(number, null));
  group.append(inputs[0], " to ", inputs[1], all);
  return group;
}

function keep(factor, range) {
  if (range === null) state.ranges.delete(factor);
  else state.ranges.set(factor, range);
  found.factors[factor].show?.();
  update();
}

function writeControls() {
  const controls = document.getElementById("explore-controls");
  controls.addEventListener("submit", (event) => event.preventDefault());
  const choice = element("select", { id: "explore-metric", ariaLabel: "metric" });
  choice.setAttribute("aria-label", "metric");
  found.metrics.forEach((metric, n) => choice.append(element("option", { value: n }, metric.title)));
  choice.value = state.metric;
  choice.addEventListener("change", () => {
    state.metric = Number(choice.value);
    state.chosen = null;
    draw();
  });
  controls.append(element("fieldset", {}, element("legend", {}, "metric"), choice));
  const arms = found.arms.map((arm) => arm.variant);
  const names = arms.map((variant) => found.variants[variant]);
  controls.append(boxes("variants", arms, names.map((name, n) => `${SIGNS[n % SIGNS.length]} ${name}`), state.variants));
  if (found.workloads.length > 1) {
    controls.append(boxes("workloads", [...found.workloads.keys()], found.workloads, state.workloads));
  }
  const colors = Object.values(VERDICT_COLORS).map((name) => `var(${name})`);
  controls.append(boxes("verdicts", Object.keys(VERDICTS), Object.values(VERDICTS), state.verdicts, colors));
  found.factors.forEach((factor, n) => {
    if (!factor.words) {
      controls.append(rangeInputs(factor, n));
      return;
    }
    const words = [...new Set(factor.values)];
    const set = state.ranges.get(n) ?? new Set(words);
    state.ranges.set(n, set);
    controls.append(boxes(factor.label, words, words, set));
  });
}

function writeCounts(most) {
  const metric = found.metrics[state.metric];
  const heads = ["variant", "against", "cases", ...Object.values(VERDICTS)];
  counts.tHead.replaceChildren(element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head))));
  const body = found.arms
    .filter((arm) => state.variants.has(arm.variant))
    .map((arm) => {
      const some = kept.filter((row) => row.variant === arm.variant);
      const of = (verdict) => some.filter((row) => row.verdict === verdict).length;
      const cells = [some.length, ...Object.keys(VERDICTS).map(of)];
      return element(
        "tr",
        {},
        element("th", { scope: "row" }, found.variants[arm.variant]),
        element("td", {}, found.variants[arm.baseline]),
        ...cells.map((cell) => element("td", { className: "number" }, String(cell)))
      );
    });
  counts.tBodies[0].replaceChildren(...body);
  const some = most > MOST_DRAWN ? `A chart of more than ${MOST_DRAWN} cases draws ${MOST_DRAWN} of them, evenly over their ratios. ` : "";
  document.getElementById("explore-drawn").textContent =
    `${kept.length} of ${rows.length} cases are kept. ${some}Ratios ${metric.more ? "above" : "below"} 1: the variant helps.`;
}

// The trials of a case beside those of its baseline, by repetition; the worst for the arm first. A failure or a timeout is
// worse than any value. A pair that nobody can judge is among the last.
function pairsOf(row, arm) {
  const { more } = found.compared[row.workload];
  const sides = ["baseline", "variant"].map((side) => {
    const [ids, values, states, repetitions] = found.trials.cases[`${arm[side]},${row.workload},${row.point}`] ?? [[], [], {}, []];
    return new Map(ids.map((id, n) => [repetitions[n], { id, value: number(values[n]) ?? NaN, text: states[n] ?? text(values[n]) }]));
  });
  const missing = { value: NaN, text: "–" };
  const all = [...new Set(sides.flatMap((side) => [...side.keys()]))].map((repetition) => {
    const [baseline, trial] = sides.map((side) => side.get(repetition) ?? missing);
    const known = baseline.value > 0 && trial.value >= 0 && Math.max(baseline.value, trial.value) < Infinity;
    // The worst share is 0, as a trial has it that did not get through.
    const [over, of] = [baseline.value, trial.value].map((value) => (more ? Math.max(value, 0) : value));
    const far = Number.isNaN(of / over) ? -Infinity : (more ? -1 : 1) * (of / over);
    return { repetition, baseline, arm: trial, ratio: known ? trial.value / baseline.value : null, far };
  });
  return all.sort((a, b) => (a.far === b.far ? a.repetition - b.repetition : b.far - a.far));
}

function writeChosen() {
  const row = state.chosen;
  if (row === null) {
    chosenPanel.replaceChildren(element("p", { className: "muted" }, "No case is chosen."));
    return;
  }
  const arm = armOf(row.variant);
  const title = `${found.variants[row.variant]} against ${found.variants[arm.baseline]}, ${found.workloads[row.workload]}, ${networkText(row.point)}`;
  const said = `Ratio ${ratioText(row)}: ${VERDICTS[row.verdict]}. ${found.metrics[state.metric].title} of the baseline: ${text(row.baseline)}.`;
  const command = element("pre", { tabIndex: 0 });
  const list = pairsOf(row, arm);
  const show = (pair) => {
    const [one, other] = [pair.baseline.id, pair.arm.id];
    const both = one !== undefined && other !== undefined;
    command.textContent = both ? found.diff.replace("FIRST", one).replace("SECOND", other) : found.replay.replaceAll("TRIAL", one ?? other);
  };
  const table = element(
    "table",
    { className: "pairs" },
    element("caption", {}, `Pairs of trials that met the same losses: ${found.compared[row.workload].title}`),
    element("thead", {}, element("tr", {}, ...["repetition", found.variants[arm.baseline], found.variants[arm.variant], "ratio", "both over one axis"].map((head) => element("th", {}, head)))),
    element(
      "tbody",
      {},
      ...list.map((pair) => {
        const button = element("button", { type: "button" }, pair.baseline.id === undefined || pair.arm.id === undefined ? "replay" : `diff ${pair.baseline.id} ${pair.arm.id}`);
        button.addEventListener("click", () => show(pair));
        const cells = [pair.repetition, pair.baseline.text, pair.arm.text, pair.ratio === null ? "–" : text(pair.ratio)];
        return element("tr", {}, ...cells.map((cell) => element("td", { className: "number" }, String(cell))), element("td", {}, button));
      })
    )
  );
  if (list.length) show(list[0]);
  const some = found.trials.of_each < found.trials.repetitions ? ` The first ${found.trials.of_each} of ${found.trials.repetitions} repetitions are listed.` : "";
  const hint = `The worst pair for the arm comes first.${some} The command runs both trials again, and marks the packet at which they part:`;
  const none = "The campaign has too many cases to list their trials here: fecbench show --trials lists them.";
  chosenPanel.replaceChildren(
    element("p", {}, element("strong", {}, title)),
    element("p", {}, said),
    ...(found.trials.of_each ? [element("div", { className: "scroll" }, table)] : []),
    element("p", { className: "muted" }, found.trials.of_each ? hint : none),
    command
  );
}

// ---- the charts

function reach() {
  const ends = rows.flatMap((row) => [row.ratio, row.low, row.high]).filter((value) => typeof value === "number" && value > 0);
  const logs = ends.map((value) => Math.abs(Math.log(value))).sort((a, b) => a - b);
  // An interval far out may not squeeze all others.
  const far = logs.length ? Math.max(logs[Math.floor(0.98 * (logs.length - 1))], Math.log(1.06)) : Math.log(2);
  return 1.1 * far;
}

function clamp(value, end) {
  const known = number(value);
  return known === null ? null : Math.min(Math.max(known, Math.exp(-end)), Math.exp(end));
}

// What a chart draws of a case: few strings, made once.
function mark(row, end) {
  row.y ??= clamp(row.ratio, end);
  row.y_low ??= clamp(row.low, end);
  row.y_high ??= clamp(row.high, end);
  row.arm ??= found.variants[row.variant];
  row.network ??= networkText(row.point);
  row.told ??= ratioText(row);
  row.size ??= found.workloads[row.workload];
  row.says ??= VERDICTS[row.verdict];
  return row;
}

// Evenly many of the cases in the order of their ratios. Those of one ratio are mixed: each second network of a grid
// may have one value of a factor alone.
function thinned(list) {
  if (list.length <= MOST_DRAWN) return list;
  const sorted = [...list].sort((a, b) => number(a.ratio) - number(b.ratio) || mixed(a.n) - mixed(b.n));
  return Array.from({ length: MOST_DRAWN }, (_, n) => sorted[Math.floor((n * list.length) / MOST_DRAWN)]);
}

// A number that says nothing about n, the same each time: the finalizer of MurmurHash3.
function mixed(n) {
  let hash = n;
  for (const factor of [0x85ebca6b, 0xc2b2ae35]) hash = Math.imul(hash ^ (hash >>> 15), factor);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function ticks(end) {
  const inside = ROUND.filter((value) => Math.abs(Math.log(value)) < 0.98 * end);
  const apart = (2 * end) / 9;
  const shown = [1];
  for (const value of inside.sort((a, b) => Math.abs(Math.log(b)) - Math.abs(Math.log(a)))) {
    if (shown.every((other) => Math.abs(Math.log(value / other)) >= apart)) shown.push(value);
  }
  return shown;
}

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function config() {
  const [ink, line] = ["--ink", "--line"].map(css);
  return {
    background: null,
    font: "system-ui, sans-serif",
    view: { stroke: line },
    axis: {
      labelColor: ink,
      titleColor: ink,
      gridColor: line,
      domainColor: line,
      tickColor: line,
      labelFontSize: 12,
      titleFontSize: 12,
      titleFontWeight: "normal",
      labelOverlap: "greedy",
      labelSeparation: 6,
    },
    legend: { disable: true },
    aria: false,
  };
}

function spec(x, end, width, height, { brush = false } = {}) {
  const metric = found.metrics[state.metric];
  const y = {
    field: "y",
    type: "quantitative",
    scale: { type: "log", domain: [Math.exp(-end), Math.exp(end)], nice: false },
    axis: { values: ticks(end), format: ".4~r", title: `◀ ${metric.more ? "harms" : "helps"}   ratio   ${metric.more ? "helps" : "harms"} ▶` },
  };
  const tooltip = [
    ["network", "where"],
    ["arm", "variant"],
    ["size", "workload"],
    ["told", "ratio [95 %]"],
    ["says", "verdict"],
  ].map(([field, title]) => ({ field, title, type: "nominal" }));
  const ink = css("--ink");
  // The colour is the verdict and nothing else; the shape is the variant.
  const verdicts = Object.keys(VERDICTS);
  const colors = verdicts.map((verdict) => css(VERDICT_COLORS[verdict]));
  const color = { field: "verdict", type: "nominal", scale: { domain: verdicts, range: colors } };
  const fill = { ...color, scale: { domain: verdicts, range: [...colors.slice(0, 3), "transparent"] } };
  const labels = found.arms.map((arm) => found.variants[arm.variant]);
  const points = {
    mark: { type: "point", size: rows.length > MOST_IN_SVG ? 20 : 75, strokeWidth: 1, opacity: 0.9 },
    encoding: {
      x,
      y,
      stroke: color,
      tooltip,
      shape: { field: "arm", type: "nominal", scale: { domain: labels, range: labels.map((_, n) => SHAPES[n % SHAPES.length]) } },
      fill,
    },
  };
  if (brush) {
    const select = { type: "interval", encodings: ["x"], clear: "dblclick", translate: false, zoom: false, mark: { fillOpacity: 0, strokeOpacity: 0 } };
    points.params = [{ name: "brush", select }];
  }
  const layer = [
    { data: { values: [{ y: 1 }] }, mark: { type: "rule", color: ink }, encoding: { y: { ...y, field: "y" } } },
    { mark: { type: "rule", opacity: 0.45 }, encoding: { x, y: { ...y, field: "y_low" }, y2: { field: "y_high" }, color } },
    points,
    { data: { name: "chosen" }, mark: { type: "point", shape: "circle", size: 220, strokeWidth: 2.5, color: ink }, encoding: { x, y } },
  ];
  if (brush) {
    const ends = { x: { ...x, field: "from" }, x2: { field: "to" } };
    layer.unshift({ data: { name: "range" }, mark: { type: "rect", color: ink, opacity: 0.12 }, encoding: ends });
  }
  return { $schema: "https://vega.github.io/schema/vega-lite/v6.json", width, height, data: { name: "cases" }, layer, datasets: { cases: [], chosen: [], range: [] }, config: config() };
}

async function embed(place, definition, factor) {
  const renderer = rows.length > MOST_IN_SVG ? "canvas" : "svg";
  const made = await vegaEmbed(place, definition, { actions: false, ast: true, renderer, tooltip: { theme: "custom" } });
  // The chart's name says what it shows; its marks have no names of their own.
  for (const drawn of place.querySelectorAll("svg, canvas")) drawn.setAttribute("aria-hidden", "true");
  made.view.addEventListener("click", (event, item) => {
    if (item?.datum?.n !== undefined) choose(rows[item.datum.n]);
  });
  if (factor !== null && !found.factors[factor].words) {
    made.view.addSignalListener("brush", (_, value) => {
      // In the digits that the inputs show and the networks have, so that a value that is shown is kept.
      if (value.x) keepSoon(factor, [Math.min(...value.x), Math.max(...value.x)].map((end) => Number(end.toPrecision(4))));
    });
    place.addEventListener("dblclick", () => keep(factor, null));
  }
  views.push({ view: made.view, factor, finalize: () => made.finalize() });
}

let soon = null;
function keepSoon(factor, range) {
  if (soon === null) requestAnimationFrame(() => { const [of, ends] = soon; soon = null; keep(of, ends); });
  soon = [factor, range];
}

function xOf(factor) {
  const title = factor.label;
  if (factor.words) return { field: "x", type: "nominal", axis: { title, labelLimit: 90, labelAngle: -30 } };
  const ends = [Math.min(...factor.values), Math.max(...factor.values)];
  const room = factor.log ? Math.pow(ends[1] / ends[0], 0.03) : 0.03 * (ends[1] - ends[0]);
  const domain = factor.log ? [ends[0] / room, ends[1] * room] : [ends[0] - room, ends[1] + room];
  return {
    field: "x",
    type: "quantitative",
    scale: { type: factor.log ? "log" : "linear", domain, nice: false, ...(factor.log ? {} : { zero: false }) },
    axis: { title, format: ".4~r", tickCount: 5 },
  };
}

// Draw the charts anew: the metric or the colours are others.
async function draw() {
  const current = ++drawing;
  for (const each of views) each.finalize();
  views = [];
  rows = rowsOf(found.metrics[state.metric]);
  if (state.chosen !== null) state.chosen = rows[state.chosen.n];
  const end = reach();
  rows.forEach((row) => mark(row, end));
  const ranks = document.getElementById("explore-ranks");
  const factors = document.getElementById("explore-factors");
  const places = found.factors.map((factor) => element("div", { className: "chart", tabIndex: 0, role: "application", ariaLabel: `The ratio over ${factor.label}. Arrow keys choose a case.` }));
  factors.replaceChildren(...places);
  const wide = Math.max(180, ranks.clientWidth - 75);
  const narrow = places.length ? Math.max(180, places[0].clientWidth - 75) : 0;
  const x = { field: "share", type: "quantitative", scale: { domain: [0, 100], nice: false }, axis: { title: "rank of the kept cases by their ratio (%)", format: ".4~r" } };
  await embed(ranks, spec(x, end, wide, 230), null);
  for (const [n, place] of places.entries()) {
    if (current !== drawing) return;
    await embed(place, spec(xOf(found.factors[n]), end, narrow, 170, { brush: !found.factors[n].words }), n);
    place.addEventListener("keydown", walk);
  }
  update();
}

function update() {
  kept = rows.filter((row) => passes(row)).sort((a, b) => number(a.ratio) - number(b.ratio));
  kept.forEach((row, n) => (row.share = (100 * (n + 0.5)) / kept.length));
  if (state.chosen !== null && !passes(state.chosen)) state.chosen = null;
  let most = kept.length; // cases of a chart: a factor's has those that its own range leaves out
  for (const { view, factor } of views) {
    const with_x = (row) => (factor === null ? row : { ...row, x: found.factors[factor].values[row.point] });
    const list = factor === null ? kept : rows.filter((row) => passes(row, factor));
    const range = state.ranges.get(factor);
    const ends = range && !(range instanceof Set) ? [{ from: range[0], to: range[1] }] : [];
    most = Math.max(most, list.length);
    view.data("cases", thinned(list).map(with_x));
    view.data("chosen", state.chosen === null ? [] : [with_x(state.chosen)]);
    if (factor !== null && !found.factors[factor].words) view.data("range", ends);
    view.runAsync();
  }
  writeCounts(most);
  writeChosen();
  remember();
}

function choose(row) {
  state.chosen = row;
  update();
}

// Arrow keys walk over the kept cases in the order of their ratios.
function walk(event) {
  const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity };
  if (!(event.key in steps) || !kept.length) return;
  event.preventDefault();
  const at = state.chosen === null ? -1 : kept.indexOf(state.chosen);
  const next = Math.min(Math.max(at + steps[event.key], 0), kept.length - 1);
  choose(kept[next]);
}

// ---- the address, which keeps what is chosen

function remember() {
  const some = new URLSearchParams();
  if (state.metric) some.set("metric", state.metric);
  const all = { v: found.arms.map((arm) => arm.variant), w: [...found.workloads.keys()], d: Object.keys(VERDICTS) };
  for (const [name, set] of Object.entries({ v: state.variants, w: state.workloads, d: state.verdicts })) {
    if (set.size < all[name].length) some.set(name, [...set].join());
  }
  for (const [factor, range] of state.ranges) {
    if (!(range instanceof Set)) some.set(`f${factor}`, range.join());
    else if (range.size < new Set(found.factors[factor].values).size) some.set(`f${factor}`, JSON.stringify([...range]));
  }
  if (state.chosen !== null) some.set("case", state.chosen.n);
  const kept = some.toString();
  if (kept || location.hash.startsWith("#explore&")) history.replaceState(null, "", kept ? `#explore&${kept}` : "#explore");
}

function recall() {
  if (!location.hash.startsWith("#explore&")) return;
  const some = new URLSearchParams(location.hash.slice("#explore&".length));
  const numbers = (text) => text.split(",").filter(Boolean).map(Number);
  if (Number(some.get("metric")) in found.metrics) state.metric = Number(some.get("metric"));
  if (some.has("v")) state.variants = new Set(numbers(some.get("v")));
  if (some.has("w")) state.workloads = new Set(numbers(some.get("w")));
  if (some.has("d")) state.verdicts = new Set(some.get("d").split(",").filter((verdict) => verdict in VERDICTS));
  found.factors.forEach((factor, n) => {
    const range = some.get(`f${n}`);
    if (range === null) return;
    if (factor.words) state.ranges.set(n, new Set(JSON.parse(range)));
    else if (numbers(range).length === 2) state.ranges.set(n, numbers(range));
  });
  const chosen = some.get("case");
  if (chosen !== null) state.chosen = rowsOf(found.metrics[state.metric])[Number(chosen)] ?? null;
}

// ---- what is shown, as files

function cell(value) {
  const text = String(value ?? "");
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvOfKept() {
  const [before, after] = [["variant", "baseline", "workload", "network"], ["ratio", "low", "high", "verdict", "metric"]];
  const own = [...before, ...after]; // a design may name a factor as one of them
  const labels = found.factors.map(({ label }) => (own.includes(label) ? `factor ${label}` : label));
  const heads = [...before, ...labels, ...after];
  const lines = kept.map((row) => [
    found.variants[row.variant],
    found.variants[armOf(row.variant).baseline],
    found.workloads[row.workload],
    row.point,
    ...found.factors.map((factor) => factor.values[row.point]),
    row.ratio,
    row.low,
    row.high,
    VERDICTS[row.verdict],
    found.metrics[state.metric].name,
  ]);
  return [heads, ...lines].map((line) => line.map(cell).join()).join("\n") + "\n";
}

async function save(form) {
  const address =
    form === "csv"
      ? URL.createObjectURL(new Blob([csvOfKept()], { type: "text/csv" }))
      : await views[0].view.toImageURL(form, form === "png" ? 2 : 1);
  element("a", { href: address, download: `networks.${form}` }).click();
}

for (const button of document.querySelectorAll("#explore-save button")) {
  button.addEventListener("click", () => save(button.dataset.form));
}

document.getElementById("explore-ranks").addEventListener("keydown", walk);
recall();
writeControls();
found.factors.forEach((factor) => factor.show?.());
function begin() {
  if (part.open && !views.length) draw();
}
part.addEventListener("toggle", begin);
begin();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => views.length && draw());
