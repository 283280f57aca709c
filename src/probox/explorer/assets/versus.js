// Intervals of the summary, and the comparison of two detectors: differences with intervals and tests.
const { probox } = window;
const { h, byId, percent, count } = probox;
const { FEW, LEVEL, REPLICATES } = probox.constants.RESAMPLING;
const { KEYS, Samples, compared, conclusion, inSlices, pText, sampled, unitOf } = probox.resampling;

const CONFIDENCE = `${100 * LEVEL}%`;
const MARK = "✱";
const ALPHA = Number((1 - LEVEL).toFixed(6)); // significance level

// --- cache: bootstrap results and comparisons of the last thresholds ---

const KEPT = 8;
/** @typedef {{ numbers: Map<number, Sampled>; complete: boolean; differences: Map<string, Compared> }} Known */
/** @type {Map<number | null, Known>} */
const thresholds = new Map(); // numbers by result, differences by pair; most recent threshold last
/** @type {Samples | null} */
let samples = null;
/** @type {(() => void) | null} */
let stop = null;
probox.resampling.busy = false; // whether resampling is running

/** Return the cache of a threshold and mark it as the most recent, so that a running computation keeps its cache. */
function knownAt(/** @type {number | null} */ threshold) {
  /** @type {Known} */
  const known = thresholds.get(threshold) ?? { numbers: new Map(), complete: false, differences: new Map() };
  thresholds.delete(threshold);
  thresholds.set(threshold, known);
  const [oldest] = thresholds.keys();
  if (thresholds.size > KEPT) thresholds.delete(oldest);
  return known;
}

const measured = (/** @type {Result} */ result) => result.measures.includes("pdq");

/** Return Python's interval of mAP or LRP of all detections, or null. */
function givenInterval(/** @type {number} */ r, /** @type {string} */ key) {
  const ends = probox.store.results[r].intervals[key];
  return ends ? { low: ends[0], high: ends[1] } : null;
}

/** Return the interval of a result's number at a threshold; null while it is computed, or without one. */
probox.intervalOf = (r, key, threshold) =>
  thresholds.get(threshold)?.numbers.get(r)?.intervals[key] ?? (threshold === null ? givenInterval(r, key) : null);

/** Return the description of the intervals; "" without intervals. */
probox.intervalWords = (store, { t }) => {
  const given = t === null && store.results.some((result) => Object.keys(result.intervals).length);
  if (!given && !thresholds.get(t)?.complete) return "";
  return (
    `below ${given ? "numbers" : "PDQ, its qualities and counts"}: ${CONFIDENCE} confidence intervals, bootstrap over images, ` +
    `${count(REPLICATES)} replicates${store.count < FEW ? ` (too narrow for fewer than ${FEW} images)` : ""}`
  );
};

/** Return why two results are not comparable, or null. */
const obstacle = (/** @type {Store} */ store, /** @type {number} */ a, /** @type {number} */ b) =>
  store.index.obstacles[`${Math.min(a, b)},${Math.max(a, b)}`] ??
  (measured(store.results[a]) && measured(store.results[b]) ? null : "PDQ was not computed for both");

/** Return the cached comparison of the main detector and its rival, or null. */
const comparison = (/** @type {State} */ state) =>
  thresholds.get(state.t)?.differences.get(`${state.main} ${probox.rivalOf(state)}`) ?? null;

/**
 * @param {Store} store
 * @param {State} state
 * @param {Samples} drawn
 * @returns {Generator<undefined, void>}
 */
function* everything(store, state, drawn) {
  const known = knownAt(state.t),
    { numbers, differences } = known;
  for (const [r, result] of store.results.entries()) {
    if (measured(result) && !numbers.has(r)) numbers.set(r, yield* sampled(store, drawn, r, state.t));
  }
  known.complete = numbers.size > 0;
  probox.renderSummaryAgain();
  probox.captionsAgain();
  const a = state.main,
    b = probox.rivalOf(state);
  if (b === null || obstacle(store, a, b)) return;
  const own = numbers.get(a),
    other = numbers.get(b);
  if (!comparison(state) && own && other) {
    differences.set(`${a} ${b}`, yield* compared(store, drawn, [a, b], state.t, [own, other]));
  }
  renderVersus(store, state);
  probox.renderGroupsAgain();
}

/**
 * Compute missing intervals and comparisons in slices, and cancel those of an earlier state.
 *
 * @type {Work}
 */
function resample(store, state) {
  stop?.();
  if (store.count < 2) return;
  samples ||= new Samples(store.count, store.classes.length);
  probox.resampling.busy = true;
  stop = inSlices(everything(store, state, samples), () => {
    probox.resampling.busy = false;
  });
}

// --- text ---

const signed = (/** @type {number} */ value, /** @type {(value: number) => string} */ write) =>
  value < 0 ? `−${write(-value)}` : `+${write(value)}`;
const whole = (/** @type {number} */ value) => count(Math.round(value));
const written = (/** @type {string} */ key) => (unitOf(key) === "count" ? whole : percent);

const METHOD = `${count(REPLICATES)} bootstrap replicates (intervals) and paired permutations (p) over images, as in probox compare`;

// --- the section ---

const RULE = `p at most ${ALPHA} and the interval excludes 0`;
const markOf = (/** @type {Difference} */ one) =>
  one.claimed &&
  h(
    "span",
    { class: "claimed", title: `significant: ${RULE}` },
    ` ${MARK}`,
    h("span", { class: "offscreen" }, "significant"),
  );
const betweenText = (/** @type {Ends | null} */ between, /** @type {(value: number) => string} */ write) =>
  between ? `${signed(between.low, write)} to ${signed(between.high, write)}` : "–";

/**
 * Return a row of the table; without `one`, the difference has neither interval nor p-value.
 *
 * @param {Column} column
 * @param {number} first
 * @param {number} second
 * @param {Difference | null | undefined} one
 */
function row(column, first, second, one) {
  const write = written(column.key),
    value = first - second,
    p = one?.p ?? NaN;
  const shown = (/** @type {number} */ number) => (Number.isFinite(number) ? write(number) : "–");
  return h(
    "tr",
    { "data-key": column.key },
    h(
      "th",
      { scope: "row", title: probox.hintOf(column) },
      column.heading,
      column.better === "low" && " (lower is better)",
    ),
    probox.cell(first, shown(first)),
    probox.cell(second, shown(second)),
    probox.cell(
      value,
      { class: one?.claimed ? "claimed" : null, "data-low": one?.between?.low, "data-high": one?.between?.high },
      Number.isFinite(value) ? signed(value, write) : "–",
      one && markOf(one),
    ),
    h("td", betweenText(one?.between ?? null, write)),
    probox.cell(p, Number.isFinite(p) ? pText(p).replace("p = ", "") : "–"),
  );
}

/** @type {Work} */
function renderVersus(store, state) {
  const a = state.main,
    b = probox.rivalOf(state);
  const reason = b === null ? null : obstacle(store, a, b);
  byId("versus-card").hidden = b === null || reason !== null;
  const found = comparison(state);
  const names = b === null ? [] : [store.results[a].name, store.results[b].name];
  const sentence = store.count < 2 || found ? conclusion(names, found?.columns.PDQ ?? null, store.count) : "…";
  byId("versus-words").textContent =
    b === null
      ? "Select a second detector to show differences, confidence intervals and p-values."
      : reason
        ? `These results are not comparable: ${reason}.`
        : sentence;
  byId("versus-method").textContent =
    b === null || reason
      ? ""
      : [
          `${MARK} significant: ${RULE}.`,
          store.count >= 2 && store.count < FEW
            ? `Only ${store.count} images: intervals tend to be too narrow below ${FEW}.`
            : "",
          found ? classWords(names, found) : "",
        ]
          .filter(Boolean)
          .join(" ");
  if (b === null || reason) return;
  const rows = probox.summaryRows(store, state.t);
  const columns = store.index.columns.filter(({ key }) => [a, b].every((r) => Number.isFinite(rows[r].numbers[key])));
  const lines = columns.map((column) => {
    const [first, second] = [a, b].map((r) => rows[r].numbers[column.key]);
    return row(column, first, second, KEYS.includes(column.key) ? found?.columns[column.key] : null);
  });
  byId("versus-table").replaceChildren(
    probox.head(["", ...names, "difference", `${CONFIDENCE} interval`, "p"]),
    h("tbody", lines),
  );
}

/** Return a sentence about significant differences of classes. */
function classWords(/** @type {string[]} */ [a, b], /** @type {Compared} */ { classes }) {
  const tested = classes.filter((one) => one !== null);
  const significant = tested.filter((one) => one.claimed);
  if (!significant.length) return `PDQ differs significantly in none of ${tested.length} classes (Holm's correction).`;
  const ahead = significant.filter((one) => one.difference > 0).length;
  return `PDQ per class (Holm's correction): ${a} is significantly better in ${ahead} of ${tested.length} classes, ${b} in ${significant.length - ahead}.`;
}

// --- the table of classes ---

probox.groupColumns.push((id, store, state) => {
  const a = state.main,
    b = probox.rivalOf(state);
  if (id !== "classes" || b === null || obstacle(store, a, b)) return [];
  const [own, other] = [a, b].map((r) => store.view(r, state.t).perClass());
  const found = comparison(state);
  return [
    {
      key: "versus",
      early: true,
      ends: (group) => found?.classes[group]?.between,
      heading: `PDQ − ${store.results[b].name}`,
      values: own.map((one, group) => one.PDQ - other[group].PDQ),
      hint:
        `PDQ of ${store.results[a].name} minus PDQ of ${store.results[b].name}, in points, with ${CONFIDENCE} interval; ` +
        `${MARK} significant: adjusted p at most ${ALPHA} (Holm's correction for all classes) and the interval excludes 0`,
      text: (value, group) => {
        const one = found?.classes[group];
        if (!Number.isFinite(value)) return "–";
        return h(
          "span",
          {
            title: one
              ? `adjusted ${pText(one.adjusted)} (Holm's correction), unadjusted ${pText(one.p)}, ${count(one.images)} images`
              : null,
          },
          signed(value, percent),
          one && markOf(one),
          one?.between && h("span", { class: "interval" }, betweenText(one.between, percent)),
        );
      },
    },
  ];
});

probox.follow(["t", "main", "rival"], renderVersus, "frame", "versus-table");
probox.follow(["t", "main", "rival"], resample, "rest");

probox.onStart((store) => {
  byId("versus").hidden = store.results.length < 2;
  byId("summary").classList.toggle("sampled", store.count > 1);
  probox.detectorChoice("versus-main", "main");
  probox.detectorChoice("versus-rival", "rival");
  probox.exportable("versus-table", { name: "versus", more: () => METHOD });
});
