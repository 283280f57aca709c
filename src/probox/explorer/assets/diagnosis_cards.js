// The section Diagnosis: Python's sentences, which refer to the threshold of the evaluation.
const { probox } = window;
const { h, byId, named, percent, count } = probox;

/** Return the detections to which the sentences refer. */
function ofWhich(/** @type {Store} */ store) {
  const own = [...new Set(store.results.map(({ why }) => why.threshold))];
  if (own.length > 1) return "all detections of each result";
  return own[0] === null ? "all detections" : `detections above ${own[0]}`;
}

probox.onStart((store) => {
  byId("verdicts").replaceChildren(
    ...store.results.map((result, r) =>
      h(
        "article",
        { class: "card", "data-result": r },
        h("h3", probox.glyph(probox.line(r), r), result.name),
        h("ul", ...result.why.verdict.map((text) => h("li", text[0].toUpperCase() + text.slice(1)))),
        result.why.notes.map((text) => h("p", { class: "note" }, `Note: ${text}.`)),
      ),
    ),
  );
  const left = [...new Set(store.results.flatMap(({ why }) => why.left_out))];
  byId("verdict-more").textContent = left.length
    ? `Not included, because of the run time: ${left.join(" and ")}. “probox diagnose RESULT” prints all numbers.`
    : "";
});

probox.follow(["t"], (store, state) => {
  const moved = state.t !== null;
  byId("verdict-of").textContent = ofWhich(store) + (moved ? `, not the current threshold ${state.t}` : "");
  byId("verdict-of").classList.toggle("moved", moved);
  byId("verdicts").classList.toggle("moved", moved);
});

// Cards of the section "Loss and calibration": loss breakdown, possible gains, calibration of scores.

const { PARTS, WHAT_IF, FEW, SCORE_BINS, IOU } = probox.constants.WHY;

// PDQ has the colour of matches, misses and false positives have that of errors, losses of matches are grey.
/** @type {Record<string, string>} */
const PART_COLOURS = { pdq: "--right", missed: "--wrong", false_positives: "--wrong" };

/** Return a count, with a warning if it is small. */
const counted = (/** @type {number} */ n, /** @type {string} */ what) =>
  `${count(n)} ${what}${n === 1 ? "" : "s"}${n < FEW ? ` (fewer than ${FEW}: unreliable)` : ""}`;

/**
 * Fill the table of a card with the values of its chart. Cells are texts, or numbers with their text.
 *
 * @type {Probox["why"]["fill"]}
 */
const fill = (id, head, rows) => {
  const cellOf = (/** @type {Cell} */ cell) => (Array.isArray(cell) ? probox.cell(...cell) : h("td", cell));
  const lines = rows.map(([first, ...cells]) => probox.row(first, cells.map(cellOf)));
  byId(id).replaceChildren(probox.head(head), h("tbody", lines));
};

/**
 * Return the cell of a fraction, in percent.
 *
 * @type {Probox["why"]["share"]}
 */
const share = (value, digits = 1) => [value, percent(value, digits)];

probox.why = { counted, fill, share };

/** @type {Work} */
function renderBudget(store, state) {
  const keys = Object.keys(PARTS);
  const parts = keys.map((key) => ({
    key,
    name: PARTS[key],
    colour: probox.css(PART_COLOURS[key] ?? `--lack-${key}`),
  }));
  const rows = store.results.map((result, r) => {
    const budget = probox.diagnosis.budget(store.view(r, state.t));
    return {
      ...named(r),
      budget,
      values: budget && keys.map((key) => budget[key]),
      note: budget ? `PDQ ${percent(budget.pdq)}` : "nothing to score",
    };
  });
  probox.partsChart(byId("chart-budget"), {
    rows,
    parts,
    format: (value) => percent(value, 1),
    label: "loss breakdown of PDQ, in points of 100",
  });
  byId("key-budget").replaceChildren(...parts.map((part, p) => h("span", probox.partSwatch(part, p), part.name)));
  byId("of-budget").textContent =
    "PDQ points; all parts add up to 100. Labels, foreground and background: losses of true positives (Shapley values).";
  fill(
    "table-budget",
    ["detector", ...parts.map((part) => part.name)],
    rows.map((row) => [row.name, ...keys.map((key) => (row.budget ? share(row.budget[key], 2) : "–"))]),
  );
}

/** Return the repairs in order: { name, values, notes, base }, where `base` is PDQ without the repair. */
function repairs(/** @type {Store} */ store, /** @type {State} */ state) {
  const now = store.results.map((_, r) => probox.diagnosis.whatIf(store.view(r, state.t)));
  const rows = /** @type {const} */ (["no_false_positives", "no_duplicates"]).map((key) => ({
    name: WHAT_IF[key],
    values: now.map((one) => one[key]),
    base: now.map((one) => one.now),
    notes: now.map((one) => (key === "no_duplicates" ? `${count(one.duplicates)} FP fewer` : "")),
  }));
  const best = store.results.map(({ why }) => why.best);
  if (best.some(Boolean)) {
    rows.push({
      name: WHAT_IF.best_threshold,
      base: now.map((one) => one.now),
      values: best.map((one) => one?.PDQ ?? NaN),
      notes: best.map((one) =>
        !one
          ? ""
          : one.threshold === null
            ? "no threshold is better"
            : `at ${+one.threshold.toPrecision(3)}, selected on these images`,
      ),
    });
  }
  for (const key of ["labels_right", "truth_boxes"]) {
    const values = store.results.map(({ why }) => why.whole.find((one) => one.key === key)?.PDQ ?? NaN);
    if (values.some(Number.isFinite)) {
      rows.push({
        name: `${WHAT_IF[key]}, ${state.t === null ? "all detections" : `all detections, not above ${state.t}`}`,
        values,
        base: store.results.map(({ why }) => why.now ?? NaN),
        notes: values.map(() => ""),
      });
    }
  }
  return rows;
}

/** @type {Work} */
function renderWhatIf(store, state) {
  const rows = repairs(store, state);
  const gain = (/** @type {ReturnType<typeof repairs>[number]} */ row, /** @type {number} */ r) => {
    const more = 100 * (row.values[r] - row.base[r]);
    return `${more < 0 ? "−" : "+"}${Math.abs(more).toFixed(2)}`;
  };
  probox.barChart(byId("chart-what-if"), {
    above: true,
    groups: rows.map((row) => row.name),
    label: "PDQ after each change",
    format: (value, g, { r }) =>
      `${percent(value)} (${gain(rows[g], r)})${rows[g].notes[r] ? `, ${rows[g].notes[r]}` : ""}`,
    series: store.results.map((_, r) => ({ ...named(r), values: rows.map((row) => row.values[r]) })),
  });
  // Results without both bars cannot be rescored: they have no detections, or heatmaps, which results do not contain.
  const unscored = store.results.filter(({ why }) => why.whole.length === 1).map(({ name }) => name);
  byId("of-what-if").textContent = `PDQ [%] after one change, and its gain in points. ${
    unscored.length && unscored.length < store.results.length
      ? `No bar for labels of ${unscored.join(", ")}: rescoring the covariances takes too long. `
      : ""
  }More changes: probox diagnose RESULT.`;
  fill(
    "table-what-if",
    ["change", ...store.results.flatMap(({ name }) => [`${name}: PDQ [%]`, "gain, points"])],
    rows.map((row) => [
      row.name,
      ...row.values.flatMap(
        /** @returns {Cell[]} */ (value, r) =>
          Number.isFinite(value) ? [share(value, 2), [value - row.base[r], gain(row, r)]] : ["–", "–"],
      ),
    ]),
  );
}

/** @type {Work} */
function renderReliability(store, state) {
  const found = store.results.map((result) => probox.diagnosis.reliability(result, state.t));
  const bins = [...Array(SCORE_BINS).keys()];
  const rate = (/** @type {{ n: Float64Array; hits: Float64Array }} */ one, /** @type {number} */ bin) =>
    one.n[bin] ? one.hits[bin] / one.n[bin] : NaN;
  probox.lineChart(byId("chart-reliability"), {
    xRange: [0, 1],
    yRange: [0, 100],
    xLabel: "score",
    yLabel: "precision [%]",
    height: 300,
    label: "precision against mean score, in ten bins",
    format: (value) => `${value.toFixed(1)}%`,
    series: [
      ...found.map((one, r) => {
        const there = bins.filter((bin) => one.n[bin]);
        return {
          ...named(r),
          marked: "all",
          name: named(r).name,
          x: there.map((bin) => one.sums[bin] / one.n[bin]),
          y: there.map((bin) => 100 * rate(one, bin)),
          tip: (/** @type {number} */ i) => `${(100 * rate(one, there[i])).toFixed(1)}% of ${count(one.n[there[i]])}`,
        };
      }),
      { reference: true, x: [0, 1], y: [0, 100] },
    ],
  });
  byId("of-reliability").textContent =
    `${found.map((one, r) => `${named(r).name}: D-ECE ${percent(one.error, 1)}%, ${counted(one.total, "detection")}`).join("; ")}. ` +
    `D-ECE: 0% is calibrated. Below the diagonal: overconfident. Matching: COCO, IoU ${IOU}, without detections in crowds.`;
  const width = 1 / SCORE_BINS;
  fill(
    "table-reliability",
    ["score", ...store.results.flatMap(({ name }) => [`${name}: detections`, "mean score", "precision [%]"])],
    bins.map((bin) => [
      `${(bin * width).toFixed(1)} to ${((bin + 1) * width).toFixed(1)}`,
      ...found.flatMap(
        /** @returns {Cell[]} */ (one) => [
          count(one.n[bin]),
          one.n[bin] ? [one.sums[bin] / one.n[bin], (one.sums[bin] / one.n[bin]).toFixed(3)] : "–",
          share(rate(one, bin)),
        ],
      ),
    ]),
  );
}

probox.follow(["t"], renderBudget, "frame", "chart-budget");
probox.follow(["t"], renderWhatIf, "frame", "chart-what-if");
probox.follow(["t"], renderReliability, "frame", "chart-reliability");

probox.follow(["t"], (store, state) => {
  const still = store.results.filter(({ why }) => !why.follows).map(({ name }) => name);
  byId("why-of").textContent =
    `${state.t === null ? "All detections" : `Detections above ${state.t}`}. The charts follow the threshold unless stated otherwise.` +
    `${still.length ? ` Calibration of ${still.join(", ")} refers to all detections: rematching takes too long.` : ""}`;
});

probox.onStart((store) => {
  byId("why-legend").replaceChildren(...probox.legend(store));
  for (const key of ["budget", "what-if", "reliability", "coverage", "pit", "sparsification", "sigma"]) {
    probox.exportable(`table-${key}`, { name: key.replace("sigma", "std") });
  }
});
