// The section "Plots": PDQ and counts by threshold, and qualities of true positives.
const { probox } = window;
const { h, byId, named, percent } = probox;
const { BOXES, IOUS, QUALITIES, SIZES } = probox.constants;

/** @type {Work} */
const renderCharts = (store, state) => {
  const results = store.results.map((_, r) => r);
  const pickThreshold = (/** @type {number} */ x) => probox.setThreshold(Math.round(100 * x) / 100);
  probox.lineChart(byId("chart-pdq"), {
    xRange: [0, 1],
    xLabel: "label threshold",
    yLabel: "PDQ [%]",
    marker: state.t ?? NaN,
    label: "PDQ against the label threshold",
    format: (value) => (Number.isFinite(value) ? value.toFixed(2) : "–"),
    onPick: pickThreshold,
    series: results.map((r) => ({
      ...named(r),
      x: store.index.thresholds,
      y: store.results[r].curve.PDQ.map((v) => (v === null ? NaN : 100 * v)),
    })),
  });
  /** @type {["TP" | "FP" | "FN", string][]} */
  const styles = [
    ["TP", ""],
    ["FP", "7 4"],
    ["FN", "2 4"],
  ];
  probox.lineChart(byId("chart-counts"), {
    xRange: [0, 1],
    xLabel: "label threshold",
    yLabel: "count",
    marker: state.t ?? NaN,
    label: "true positives, false positives and missed objects against the label threshold",
    format: (value) => (Number.isFinite(value) ? probox.count(value) : "–"),
    onPick: pickThreshold,
    yScale: "log",
    series: results.flatMap((r) =>
      styles.map(([key, dash]) => ({
        ...named(r),
        name: `${store.results[r].name} ${key}`,
        dash,
        x: store.index.thresholds,
        y: store.results[r].curve[key],
      })),
    ),
  });
  probox.barChart(byId("chart-sizes"), {
    groups: SIZES,
    label: "PDQ of small, medium and large objects",
    format: (value) => percent(value),
    series: results.map((r) => ({
      ...named(r),
      values: store
        .view(r, state.t)
        .perSize()
        .map((row) => row.PDQ),
    })),
  });
  byId("legend").replaceChildren(...probox.legend(store));
};

/** Open the image of a detection and select it. */
probox.openDetection = (r, d) => {
  const { store } = probox;
  const { offsets } = store.results[r].detections;
  let row = 0;
  while (offsets[row + 1] <= d) row++;
  probox.update({ main: r, image: store.images.id[row], pick: `d${d - offsets[row]}` }, true);
};

probox.follow(["t"], renderCharts, "frame", "h-plots");

// Histogram of a quality over true positives; a selected range filters the gallery.

const BINS = 25;

probox.field("of", "pPDQ", "distribution", probox.oneOf(QUALITIES));

/** Filter the gallery by a range of the quality; null or the whole range removes the filter. */
function brush(/** @type {number | null} */ lo, /** @type {number | null} */ hi) {
  const none = lo === null || hi === null || (lo <= 0 && hi >= 1);
  probox.update(none ? { lo: 0, hi: 1, verdict: "" } : { quality: probox.state().of, lo, hi, verdict: "TP" });
}

/** @type {Work} */
const renderHistogram = (store, state) => {
  const filtered = state.quality === state.of && (state.lo > 0 || state.hi < 1);
  probox.lineChart(byId("chart-qualities"), {
    xRange: [0, 1],
    xLabel: `${state.of} quality`,
    yLabel: "true positives [%]",
    label: `distribution of ${state.of} quality`,
    format: (value) => `${value.toFixed(1)}%`,
    brush: filtered ? [state.lo, state.hi] : null,
    brushStep: 1 / BINS,
    onBrush: brush,
    series: store.results.map((_, r) => {
      const shares = probox.histogram(store.view(r, state.t), state.of, BINS);
      const x = [...shares.map((_, i) => i / BINS), 1];
      return { ...named(r), step: true, x, y: [...shares, shares[BINS - 1]] };
    }),
  });
  const share = (/** @type {number} */ value) => +(100 * value).toFixed(2);
  byId("brushed").replaceChildren(
    ...(filtered
      ? [
          `Gallery: ${state.of} ${share(state.lo)} to ${share(state.hi)}% `,
          h("button", { type: "button", onclick: () => probox.jump("gallery") }, "Show"),
          " ",
          h("button", { type: "button", onclick: () => brush(null, null) }, "Clear"),
        ]
      : ["Drag to select a range: the gallery shows its true positives."]),
  );
};

probox.follow(["t", "of", "quality", "lo", "hi"], renderHistogram, "frame", "chart-qualities");

probox.onStart(() => {
  byId("chart-qualities").after(h("p", { class: "brushed", id: "brushed" }));
  probox.choice("of", "of", QUALITIES);
});

// COCO's precision against recall at the threshold: mean over classes, or the selected class.

probox.field("iou", "50", "iou", probox.oneOf(Object.keys(IOUS)));

const mean = (/** @type {number[]} */ values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Return the results with mAP and their curves; null if the class has no objects. */
probox.recallCurves = (store, state) =>
  store.results.flatMap((result, r) => {
    if (!result.measures.includes("map") || !result.boxes) return [];
    return [
      { r, name: result.name, curve: store.view(r, state.t).boxes()?.curve(IOUS[state.iou], state.class) ?? null },
    ];
  });

/** @type {Work} */
const render = (store, state) => {
  const curves = probox.recallCurves(store, state);
  const whose = state.class === null ? "mean over classes" : store.classes[state.class];
  byId("h-recall").textContent = state.class === null ? "Precision and recall" : `Precision and recall: ${whose}`;
  const known = curves.flatMap(({ r, name, curve }) => (curve ? [{ r, name, curve }] : []));
  byId("of-recall").textContent = known.length
    ? `AP ${known.map((one) => `${one.name} ${percent(mean(one.curve), 1)}`).join(" · ")}; ${probox.thresholdText(store, state)}; ` +
      (state.class === null ? "mean over classes with objects" : "selected class")
    : curves.length
      ? `No objects of ${whose}.`
      : "Not available: rematching for each threshold takes too long.";
  probox.lineChart(byId("chart-recall"), {
    xRange: [0, 1],
    yRange: [0, 1.02],
    xLabel: "recall",
    yLabel: "precision",
    label: `precision against recall, ${whose}`,
    height: 320,
    format: (value) => percent(value, 1),
    series: known.map((one) => ({
      ...named(one.r),
      name: `${one.name} (AP ${percent(mean(one.curve), 1)})`,
      x: BOXES.RECALLS,
      y: one.curve,
    })),
  });
};

probox.follow(["t", "iou", "class"], render, "frame", "chart-recall");

probox.onStart((store) => {
  probox.choice("iou", "iou", Object.entries(IOUS));
  const card = byId("chart-recall").closest(".card");
  if (card && !store.results.some((result) => result.measures.includes("map"))) card.toggleAttribute("hidden", true);
});

// Scatter plots of the qualities of true positives.

/** Return two qualities of a result's true positives, with their rows. */
function points(/** @type {View} */ view, /** @type {Quality} */ x, /** @type {Quality} */ y) {
  const rows = view.right,
    { pairs } = view.result;
  const found = { x: new Float64Array(rows.length), y: new Float64Array(rows.length), rows };
  for (let i = 0; i < rows.length; i++) {
    const p = view.pair[rows[i]];
    found.x[i] = pairs[x][p];
    found.y[i] = pairs[y][p];
  }
  return found;
}

/** @type {(id: string, x: Quality, y: Quality, levels: boolean) => Work} */
const cloud = (id, x, y, levels) => (store, state) =>
  probox.cloudChart(probox.byId(id), {
    xLabel: `${x} quality`,
    yLabel: `${y} quality`,
    height: 320,
    levels,
    label: `${y} against ${x} quality of every true positive`,
    series: store.results.map((result, r) => ({
      ...named(r),
      mark: undefined,
      ...points(store.view(r, state.t), x, y),
    })),
    onPick: (one, i) => probox.openDetection(one.r, one.rows[i]),
  });

// Many points are slow to draw, so they follow when the slider rests.
probox.follow(["t"], cloud("chart-spatial", "label", "spatial", true), "rest");
probox.follow(["t"], cloud("chart-ground", "background", "foreground", false), "rest");
