// Cards about standard deviations: coverage, PIT, sparsification, error against predicted std.
const { probox } = window;
const { h, byId, named, percent } = probox;
const { EDGES, SHARES, PIT_BINS, SHAPES, BAND, LEAST, IOU, SIGMA_BINS } = probox.constants.WHY;
const { counted, fill, share } = probox.why;
const CUT = `Pairs: COCO IoU ${IOU}; boxes with larger errors are unmatched.`;
const POINTS = 1500; // at most, per detector

probox.field("edge", "", "edge", probox.oneOf(["", ...EDGES]));

/** @type {{ store: Store; t: number | null; all: PairsAt[] } | null} */
let last = null;

/** Return the pairs of all results at the threshold, cached for all cards. */
function pairsOf(/** @type {Store} */ store, /** @type {State} */ state) {
  if (last?.store !== store || last.t !== state.t) {
    last = { store, t: state.t, all: store.results.map((result) => probox.diagnosis.pairsAt(result, state.t)) };
  }
  return last.all;
}

/**
 * Return the number of used and excluded pairs of each detector, or why there are none.
 *
 * @type {(all: PairsAt[], more?: (r: number) => string) => string}
 */
const judged = (all, more = () => "") =>
  all
    .map((at, r) => {
      const left = [
        at.plain &&
          !at.why &&
          `${probox.count(at.plain)} ${at.plain === 1 ? "box" : "boxes"} without covariance excluded`,
        at.cut && !at.why && `${probox.count(at.cut)} ${at.cut === 1 ? "edge" : "edges"} at the image border excluded`,
      ];
      return `${named(r).name}: ${[more(r), at.why || counted(at.judged, "pair"), ...left].filter(Boolean).join(", ")}`;
    })
    .join("; ");

/**
 * Without data, replace charts by the reason; return whether there are no data.
 *
 * @param {PairsAt[]} all
 * @param {...string} ids
 */
function nothing(all, ...ids) {
  if (!all.every((at) => at.why)) return false;
  for (const id of ids) byId(id).replaceChildren(h("p", { class: "none" }, `${all[0].why}: nothing to plot`));
  return true;
}

const withSigma = (/** @type {PairsAt[]} */ all) => all.map((at, r) => ({ at, r })).filter(({ at }) => !at.why);
const range = [...Array(SHARES).keys()].map((k) => (100 * k) / (SHARES - 1));
const inPercent = (/** @type {number[]} */ values) => values.map((value) => 100 * value);

/** @type {Work} */
function renderCoverage(store, state) {
  const all = pairsOf(store, state),
    edge = state.edge ? EDGES.indexOf(state.edge) : null;
  const found = withSigma(all).map(({ at, r }) => ({ r, ...probox.diagnosis.coverage(at, edge) }));
  byId("of-coverage").textContent = `${judged(all)}. Below the diagonal: overconfident. ${CUT}`;
  const shown = [50, 68, 90, 95];
  fill(
    "table-coverage",
    ["nominal", ...found.flatMap(({ r }) => [`${named(r).name}: edges [%]`, "boxes [%]"])],
    shown.map((k) => [`${k}%`, ...found.flatMap((one) => [one.edges, one.boxes].map((values) => share(values[k])))]),
  );
  if (nothing(all, "chart-coverage")) return;
  const what = state.edge ? `edge ${state.edge}` : "edges";
  probox.lineChart(byId("chart-coverage"), {
    xRange: [0, 100],
    yRange: [0, 100],
    xLabel: "nominal coverage [%]",
    yLabel: "observed coverage [%]",
    height: 300,
    label: "observed against nominal coverage",
    format: (value) => (Number.isFinite(value) ? `${value.toFixed(1)}%` : "–"),
    marker: NaN,
    series: [
      ...found.flatMap((one) => [
        { ...named(one.r), name: `${named(one.r).name} ${what}`, x: range, y: inPercent(one.edges) },
        {
          ...named(one.r),
          name: `${named(one.r).name} boxes`,
          mark: undefined,
          dash: "6 3",
          x: range,
          y: inPercent(one.boxes),
        },
      ]),
      { reference: true, x: [0, 100], y: [0, 100] },
    ],
  });
}

/** @type {Work} */
function renderPit(store, state) {
  const all = pairsOf(store, state),
    there = withSigma(all);
  const several = all.length > 1 ? " for the result with the fewest pairs" : "";
  byId("of-pit").textContent = `${judged(all)}. Band: 95% range of a bin if calibrated${several}. ${SHAPES} ${CUT}`;
  const panels = EDGES.map((name, edge) => ({
    name,
    found: there.map(({ at, r }) => ({ r, ...probox.diagnosis.pit(at, edge) })),
  }));
  fill(
    "table-pit",
    ["PIT", ...panels.flatMap(({ name, found }) => found.map(({ r }) => `${named(r).name}: ${name} [%]`))],
    [...Array(PIT_BINS).keys()].map((bin) => [
      `${(bin / PIT_BINS).toFixed(1)} to ${((bin + 1) / PIT_BINS).toFixed(1)}`,
      ...panels.flatMap(({ found }) => found.map(({ shares }) => share(shares[bin]))),
    ]),
  );
  if (nothing(all, "chart-pit")) return;
  const high =
    1.06 *
    Math.max(
      ...panels.flatMap(({ found }) => found.flatMap(({ shares }) => inPercent(shares).filter(Number.isFinite))),
      20,
    );
  if (!byId("pit-x1"))
    byId("chart-pit").replaceChildren(...EDGES.map((name) => h("div", { class: "chart", id: `pit-${name}` })));
  const x = [...Array(PIT_BINS + 1).keys()].map((k) => k / PIT_BINS),
    p = 1 / PIT_BINS;
  panels.forEach(({ name, found }) => {
    const some = found.filter(({ total }) => total);
    const reach = some.length ? BAND * Math.sqrt((p * (1 - p)) / Math.min(...some.map(({ total }) => total))) : NaN;
    probox.lineChart(byId(`pit-${name}`), {
      xRange: [0, 1],
      yRange: [0, high],
      xLabel: `Φ(z) of ${name}`,
      yLabel: "edges [%]",
      height: 190,
      label: `PIT histogram of ${name}`,
      format: (value) => `${value.toFixed(1)}%`,
      level: 100 * p,
      band: some.length ? [100 * Math.max(p - reach, 0), 100 * (p + reach)] : null,
      series: some.map(({ r, shares }) => ({
        ...named(r),
        step: true,
        x,
        y: [...inPercent(shares), 100 * shares[PIT_BINS - 1]],
      })),
    });
  });
}

/** @type {Work} */
function renderSparsification(store, state) {
  const all = pairsOf(store, state);
  const found = new Map(withSigma(all).map(({ at, r }) => [r, probox.diagnosis.sparsification(at)]));
  const area = (/** @type {number} */ r) => {
    const one = found.get(r);
    return one ? `AUSE ${Number.isFinite(one.ause) ? one.ause.toFixed(2) : "undefined"}` : "";
  };
  byId("of-sparsification").textContent =
    `${judged(all, area)}. AUSE, lower is better: 0 is perfect, 1 is uninformative. ${CUT}`;
  const at = (/** @type {Float64Array} */ values, /** @type {number} */ part) =>
    values[Math.min(Math.floor(part * values.length), values.length - 1)];
  fill(
    "table-sparsification",
    ["removed", ...[...found.keys()].flatMap((r) => [`${named(r).name}: by std [%]`, "by error [%]"])],
    [0, 0.1, 0.25, 0.5, 0.75, 0.9].map((part) => [
      percent(part, 0) + "%",
      ...[...found.values()].flatMap(({ own, best }) => [own, best].map((values) => share(at(values, part), 2))),
    ]),
  );
  if (nothing(all, "chart-sparsification")) return;
  const series = [...found].flatMap(([r, { own, best, random }]) => {
    const n = own.length,
      rows = [...new Set([...Array(100).keys()].map((k) => Math.floor((k / 100) * n)))];
    const x = rows.map((k) => (100 * k) / n);
    /** @type {(name: string, values: (k: number) => number, dash: string, mark?: number) => Series} */
    const one = (name, values, dash, mark) => ({
      ...named(r),
      name: `${named(r).name} ${name}`,
      dash,
      mark,
      x,
      y: rows.map((k) => 100 * values(k)),
    });
    return [
      one("by predicted std", (k) => own[k], "", r),
      one("by error", (k) => best[k], "6 3"),
      one("random", () => random, "2 3"),
    ];
  });
  probox.lineChart(byId("chart-sparsification"), {
    xRange: [0, 100],
    xLabel: "removed edges, largest std first [%]",
    yLabel: "mean |error| / side of the rest [%]",
    height: 300,
    label: `mean error of the remaining edges after removal of those with the largest predicted std; ${[...found.keys()].map((r) => `${named(r).name} ${area(r)}`).join(", ")}`,
    format: (value) => `${value.toFixed(2)}%`,
    series,
  });
}

/** @type {Work} */
function renderSigma(store, state) {
  const all = pairsOf(store, state);
  const found = withSigma(all).map(({ at, r }) => ({ at, r, ...probox.diagnosis.sigmaError(at) }));
  const rho = new Map(
    found.map(({ r, spearman }) => [
      r,
      Number.isFinite(spearman) ? `Spearman ${spearman.toFixed(2)}` : "Spearman undefined: constant std",
    ]),
  );
  byId("of-sigma").textContent =
    `${judged(all, (r) => rho.get(r) || "")}. Lines: root mean squares in ${SIGMA_BINS} bins with equally many edges. ` +
    `Above the diagonal: overconfident. Errors below ${100 * LEAST}% are drawn at ${100 * LEAST}%. ${CUT}`;
  fill(
    "table-sigma",
    ["bin", ...found.flatMap(({ r }) => [`${named(r).name}: predicted std / side [%]`, "RMS error / side [%]"])],
    [...Array(Math.max(0, ...found.map(({ across }) => across.length))).keys()].map((bin) => [
      String(bin + 1),
      ...found.flatMap(({ across, up }) =>
        [across, up].map((values) => (bin < values.length ? share(values[bin], 2) : "–")),
      ),
    ]),
  );
  if (nothing(all, "chart-sigma")) return;
  const clouds = found.map(({ at, r, rows }) => {
    const every = Math.max(1, Math.ceil(rows.length / POINTS)),
      some = [...rows].filter((_, i) => i % every === 0);
    const above = (/** @type {number} */ value) => 100 * Math.max(value, LEAST);
    return {
      ...named(r),
      rows: some.map((row) => at.pairs.detection[Math.floor(row / EDGES.length)]),
      x: some.map((row) => above(at.pairs.sigma[row])),
      y: some.map((row) => above(at.pairs.error[row])),
    };
  });
  /** @type {(key: "x" | "y") => Limits} */
  const ends = (key) => {
    const values = clouds.flatMap((one) => one[key]);
    const [low, high] = [Math.min(...values) / 1.3, Math.max(...values) * 1.3],
      middle = Math.sqrt(low * high);
    return [Math.min(low, middle / Math.sqrt(10)), Math.max(high, middle * Math.sqrt(10))];
  };
  const xRange = ends("x"),
    yRange = ends("y");
  const from = Math.max(xRange[0], yRange[0]),
    to = Math.min(xRange[1], yRange[1]);
  probox.cloudChart(byId("chart-sigma"), {
    xScale: "decades",
    yScale: "decades",
    xRange,
    yRange,
    xLabel: "predicted std / side [%]",
    yLabel: "|error| / side [%]",
    height: 320,
    label: `error against predicted std of edges; ${[...rho].map(([r, text]) => `${named(r).name} ${text}`).join(", ")}`,
    format: (value) => `${value.toPrecision(3)}%`,
    series: clouds,
    lines: [
      ...(from < to ? [{ reference: true, x: [from, to], y: [from, to] }] : []),
      ...found.map(({ r, across, up }) => ({
        ...named(r),
        marked: "all",
        x: inPercent(across.map((v) => Math.max(v, LEAST))),
        y: inPercent(up.map((v) => Math.max(v, LEAST))),
      })),
    ],
    onPick: (one, i) => probox.openDetection(one.r, one.rows[i]),
  });
}

probox.onStart((store) => {
  probox.choice("edge", "edge", [["", "all four"], ...EDGES]);
  if (store.results.some(({ why }) => why.pairs.level)) return;
  // One card with an explanation replaces four empty ones.
  for (const card of document.querySelectorAll("#why .sigma")) card.toggleAttribute("hidden", true);
  byId("no-sigma").hidden = false;
  byId("no-sigma-words").textContent =
    "No detector predicts covariances. With covariances, this section shows coverage, PIT, sparsification, " +
    "and errors against the predicted std.";
});

/** @type {[keys: Key[], work: Work, id: string][]} */
const cards = [
  [["t", "edge"], renderCoverage, "coverage"],
  [["t"], renderPit, "pit"],
  [["t"], renderSparsification, "sparsification"],
  [["t"], renderSigma, "sigma"],
];
for (const [keys, work, id] of cards) {
  probox.follow(
    keys,
    (store, state) => {
      if (byId("no-sigma").hidden) work(store, state);
    },
    "rest",
    `chart-${id}`,
  );
}
