// How sure the summary's numbers are, and one detector against another: differences with intervals and tests.
const { probox } = window;
const { h, byId, percent, count } = probox;
const { FEW, LEVEL, REPLICATES } = probox.constants.RESAMPLING;
const { KEYS, Samples, compared, conclusion, inSlices, pText, sampled, unitOf } = probox.resampling;

const SURE = `${100 * LEVEL} %`;
const MARK = "✱";
const ERROR = Number((1 - LEVEL).toFixed(6)); // that claims are allowed

// --- what is known: the numbers of drawn images, and comparisons, of the last thresholds ---

const KEPT = 8;
/** @typedef {{ numbers: Map<number, Sampled>; complete: boolean; differences: Map<string, Compared> }} Known */
/** @type {Map<number | null, Known>} */
const thresholds = new Map(); // numbers by result, differences by pair; the newest threshold is the last
/** @type {Samples | null} */
let samples = null;
/** @type {(() => void) | null} */
let stop = null;
probox.resampling.busy = false; // whether numbers are still being made

/** Return what is known at a threshold, which is then the newest: what is being made is never forgotten meanwhile. */
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

/** Return the interval of mAP or LRP of all detections, which Python made; null if there is none. */
function givenInterval(/** @type {number} */ r, /** @type {string} */ key) {
  const ends = probox.store.results[r].intervals[key];
  return ends ? { low: ends[0], high: ends[1] } : null;
}

/** Return the interval of a result's number at a threshold, or null while it is being made, or if there is none. */
probox.intervalOf = (r, key, threshold) =>
  thresholds.get(threshold)?.numbers.get(r)?.intervals[key] ?? (threshold === null ? givenInterval(r, key) : null);

/** Return what these intervals are; nothing while there are none. */
probox.intervalWords = (store, { t }) => {
  const given = t === null && store.results.some((result) => Object.keys(result.intervals).length);
  if (!given && !thresholds.get(t)?.complete) return "";
  return (
    `below ${given ? "numbers" : "PDQ, its qualities and counts"}: ${SURE} intervals, images drawn anew ` +
    `${count(REPLICATES)} times${store.count < FEW ? ` (of fewer than ${FEW} images they tend to be too narrow)` : ""}`
  );
};

/** Return why two results cannot be compared, or null. */
const obstacle = (/** @type {Store} */ store, /** @type {number} */ a, /** @type {number} */ b) =>
  store.index.obstacles[`${Math.min(a, b)},${Math.max(a, b)}`] ??
  (measured(store.results[a]) && measured(store.results[b]) ? null : "PDQ was not measured of both");

/** Return what is known of the chosen detector against its rival, or null. */
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
 * Make what is not known yet, a little at a time; what was under way for another state is given up.
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

// --- words ---

const signed = (/** @type {number} */ value, /** @type {(value: number) => string} */ write) =>
  value < 0 ? `−${write(-value)}` : `+${write(value)}`;
const whole = (/** @type {number} */ value) => count(Math.round(value));
const written = (/** @type {string} */ key) => (unitOf(key) === "count" ? whole : percent);

const METHOD = `images drawn anew ${count(REPLICATES)} times (intervals) and swapped between the two (p), as probox compare does`;

// --- the section ---

const RULE = `p at most ${ERROR}, and an interval without 0`;
const markOf = (/** @type {Difference} */ one) =>
  one.claimed &&
  h(
    "span",
    { class: "claimed", title: `may be claimed: ${RULE}` },
    ` ${MARK}`,
    h("span", { class: "offscreen" }, "may be claimed"),
  );
const betweenText = (/** @type {Ends | null} */ between, /** @type {(value: number) => string} */ write) =>
  between ? `${signed(between.low, write)} to ${signed(between.high, write)}` : "–";

/**
 * Return a row of the table; `one` may be a plain difference, of which neither interval nor p is known.
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
  const told = store.count < 2 || found ? conclusion(names, found?.columns.PDQ ?? null, store.count) : "…";
  byId("versus-words").textContent =
    b === null
      ? "Choose a second detector to see by how much they differ, and whether that may be claimed."
      : reason
        ? `They cannot be compared: ${reason}.`
        : told;
  byId("versus-method").textContent =
    b === null || reason
      ? ""
      : [
          `${MARK} ${RULE}.`,
          store.count >= 2 && store.count < FEW
            ? `${store.count} images are few: intervals of fewer than ${FEW} tend to be too narrow.`
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
    probox.head(["", ...names, "difference", `${SURE} interval`, "p"]),
    h("tbody", lines),
  );
}

/** Return how many classes differ, in words. */
function classWords(/** @type {string[]} */ [a, b], /** @type {Compared} */ { classes }) {
  const tested = classes.filter((one) => one !== null);
  const sure = tested.filter((one) => one.claimed);
  if (!sure.length) return `Of ${tested.length} classes, none differs in PDQ beyond chance (Holm's correction).`;
  const ahead = sure.filter((one) => one.difference > 0).length;
  return `Of ${tested.length} classes, ${a} is ahead in ${ahead} and ${b} in ${sure.length - ahead} beyond chance (PDQ, Holm's correction).`;
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
        `PDQ of ${store.results[a].name} minus that of ${store.results[b].name}, in points, with its ${SURE} interval; ` +
        `${MARK} p at most ${ERROR} by Holm's correction for all classes, and an interval without 0`,
      text: (value, group) => {
        const one = found?.classes[group];
        if (!Number.isFinite(value)) return "–";
        return h(
          "span",
          {
            title: one
              ? `${pText(one.adjusted)} by Holm's correction (${pText(one.p)} alone), ${count(one.images)} images`
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
