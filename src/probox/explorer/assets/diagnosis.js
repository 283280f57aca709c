// Numbers of the diagnosis at a label threshold: loss breakdown, calibration of scores and standard deviations.
//
// Python matched and binned everything, because values at the edge of a bin must not be rounded differently here.
const { probox } = window;
const { NOTHING, SCORE_BINS, PIT_BINS, SIGMA_BINS, SHARES } = probox.constants.WHY;
const { FP, TP } = probox.constants.VERDICT;
const EDGES = 4;

/** Return the unpacked columns of a result's diagnosis. */
const columnsOf = probox.once((/** @type {Result} */ { why: { scores, pairs, twins } }) => ({
  code: probox.column(scores.code),
  spans: probox.columns(scores.spans),
  pairs: probox.columns(pairs),
  twins: probox.columns(twins),
}));

/** Return the threshold of detections; -1 without one, and for results whose pairs cannot follow a threshold. */
const levelOf = (/** @type {Result} */ result, /** @type {number | null} */ threshold) =>
  threshold === null || !result.why.follows ? -1 : Math.fround(threshold);

// --- loss breakdown ---

/** Return the losses of each pair by label, foreground and background, three numbers per pair. */
const lossesOf = probox.once((/** @type {Result} */ result) => {
  const { label, foreground, background } = result.pairs;
  const weight = result.convention.label_weight;
  const losses = new Float64Array(3 * label.length);
  for (let p = 0; p < label.length; p++) {
    const factors = [label[p] ** weight, foreground[p] ** (1 - weight), background[p] ** (1 - weight)];
    for (let i = 0; i < 3; i++) {
      // Shapley value: the mean loss over all orders of the factors
      const b = factors[(i + 1) % 3],
        c = factors[(i + 2) % 3];
      losses[3 * p + i] = (1 - factors[i]) * (1 / 3 + (b + c) / 6 + (b * c) / 3);
    }
  }
  return losses;
});

/** Return a view's sum of pairwise qualities, its counts, and the cost of its false positives. */
function accounts(/** @type {View} */ view) {
  const { pPDQ, TP, FN, cost } = view.whole();
  return { quality: pPDQ[0], found: TP[0], missed: FN[0], wrong: cost[0] };
}

/**
 * Return PDQ and the losses as fractions that add up to 1; null without objects and detections.
 *
 * @param {View} view
 * @returns {Record<string, number> | null}
 */
function budget(view) {
  const { quality, found, missed, wrong } = accounts(view);
  const counted = found + wrong + missed;
  if (!counted) return null;
  const losses = lossesOf(view.result),
    sums = [0, 0, 0];
  for (const d of view.right) {
    const p = 3 * view.pair[d];
    for (let i = 0; i < 3; i++) sums[i] += losses[p + i];
  }
  const [label, foreground, background] = sums;
  const parts = {
    pdq: quality,
    missed,
    false_positives: wrong,
    label,
    foreground,
    background,
    rounding: found - quality - label - foreground - background,
  };
  return Object.fromEntries(Object.entries(parts).map(([name, value]) => [name, value / counted]));
}

/** Return the number and cost of false positives that duplicate a true positive. */
function duplicates(/** @type {View} */ view) {
  const { twins } = columnsOf(view.result);
  const { cost } = view.result.detections;
  let count = 0,
    sum = 0,
    last = -1;
  for (let i = 0; i < twins.detection.length; i++) {
    // sorted by detection
    const d = twins.detection[i];
    if (d === last || view.verdict[d] !== FP || view.objectVerdict[twins.object[i]] !== TP) continue;
    last = d;
    count++;
    sum += cost ? cost[d] : 1;
  }
  return { count, cost: sum };
}

/**
 * Return PDQ after repairs without rescoring. False positives are unmatched, so removing them changes no match.
 */
function whatIf(/** @type {View} */ view) {
  const { quality, found, missed, wrong } = accounts(view);
  const twice = duplicates(view);
  return {
    now: quality / (found + wrong + missed),
    no_false_positives: quality / (found + missed),
    no_duplicates: quality / (found + wrong - twice.cost + missed),
    duplicates: twice.count,
  };
}

// --- scores ---

/** Return the detections, matched detections and sum of scores in each bin of scores, and D-ECE. */
function reliability(/** @type {Result} */ result, /** @type {number | null} */ threshold) {
  const { code, spans } = columnsOf(result);
  const { confidence, score } = result.detections;
  const level = levelOf(result, threshold);
  const n = new Float64Array(SCORE_BINS),
    hits = new Float64Array(SCORE_BINS),
    sums = new Float64Array(SCORE_BINS);
  const add = (/** @type {number} */ bin, /** @type {number} */ value) => {
    n[bin >> 1]++;
    hits[bin >> 1] += bin & 1;
    sums[bin >> 1] += value;
  };
  for (let d = 0; d < code.length; d++) {
    if (code[d] !== NOTHING && (level < 0 || confidence[d] > level)) add(code[d], score[d]);
  }
  for (let i = 0; i < spans.code.length; i++) {
    if (spans.since[i] <= level && level < spans.until[i]) add(spans.code[i], score[spans.detection[i]]);
  }
  let total = 0,
    gap = 0;
  for (let bin = 0; bin < SCORE_BINS; bin++) {
    total += n[bin];
    gap += Math.abs(hits[bin] - sums[bin]);
  }
  return { n, hits, sums, total, error: total ? gap / total : NaN };
}

// --- standard deviations ---

/**
 * Return the matched pairs of a result at a threshold, the number with a std, and the numbers of excluded ones.
 *
 * @type {(result: Result, threshold: number | null) => PairsAt}
 */
function pairsAt(result, threshold) {
  const { pairs } = columnsOf(result);
  const level = levelOf(result, threshold);
  /** @type {number[]} */
  const rows = [];
  let judged = 0,
    plain = 0,
    cut = 0;
  for (let p = 0; p < pairs.since.length; p++) {
    if (!(pairs.since[p] <= level && level < pairs.until[p])) continue;
    rows.push(p);
    if (!pairs.level) {
      plain++;
      continue;
    }
    plain += pairs.plain[p];
    cut += pairs.cut[p];
    for (let edge = 0; edge < EDGES; edge++) {
      if (pairs.level[EDGES * p + edge] !== NOTHING) {
        judged++;
        break;
      }
    }
  }
  // Without a std `why` is not empty, and no chart reads the missing columns.
  const all = /** @type {WhyPairs} */ (pairs);
  return { pairs: all, rows, judged, plain, cut, why: why(rows.length, plain, judged) };
}

/** Return why no pair has a std, or ""; the texts equal those of `probox.plots.base.why_no_sigma`. */
function why(/** @type {number} */ there, /** @type {number} */ plain, /** @type {number} */ judged) {
  if (!there) return "no matched pairs";
  if (plain === there) return "no covariances";
  return judged ? "" : "all edges at the image border";
}

/**
 * Count the values from 0 to `size` - 1 of all edges of the pairs, or of one edge.
 *
 * @param {PairsAt} at
 * @param {Uint8Array} values
 * @param {number} size
 * @param {number | null} [edge]
 * @param {number} [per]
 */
function histogram(at, values, size, edge = null, per = EDGES) {
  const counts = new Float64Array(size);
  for (const p of at.rows) {
    for (let i = edge ?? 0; i < (edge === null ? per : edge + 1); i++) {
      const value = values[per * p + i];
      if (value !== NOTHING) counts[value]++;
    }
  }
  return counts;
}

function shares(/** @type {Float64Array} */ counts) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  return { total, shares: Array.from(counts, (count) => (total ? count / total : NaN)) };
}

function running(/** @type {number[]} */ values) {
  let sum = 0;
  return values.map((value) => (sum += value));
}

/** Return the coverage of central regions of 0, 1 .. 100% probability, of edges (or one edge) and of boxes. */
function coverage(/** @type {PairsAt} */ at, /** @type {number | null} */ edge = null) {
  const edges = shares(histogram(at, at.pairs.level, SHARES, edge));
  const boxes = shares(histogram(at, at.pairs.box, SHARES, null, 1));
  return { edges: running(edges.shares), boxes: running(boxes.shares), judged: edges.total, dense: boxes.total };
}

/** Return the PIT histogram of an edge, as fractions, and the number of values. */
const pit = (/** @type {PairsAt} */ at, /** @type {number} */ edge) =>
  shares(histogram(at, at.pairs.pit, PIT_BINS, edge));

/** Return the edges with a value in a column, sorted by it. */
const order = probox.once((/** @type {Float64Array} */ column) =>
  Uint32Array.from(column.keys())
    .filter((row) => !Number.isNaN(column[row]))
    .sort((a, b) => column[a] - column[b]),
);

function kept(/** @type {PairsAt} */ at, /** @type {Float64Array} */ column) {
  const there = new Uint8Array(at.pairs.since.length);
  for (const p of at.rows) there[p] = 1;
  return order(column).filter((row) => there[(row / EDGES) | 0]);
}

/**
 * Call `work(first, end)` for each run of equal values.
 *
 * @type {(rows: Uint32Array, values: Float64Array, work: (first: number, end: number) => void) => void}
 */
function runs(rows, values, work) {
  for (let first = 0; first < rows.length;) {
    let end = first + 1;
    while (end < rows.length && values[rows[end]] === values[rows[first]]) end++;
    work(first, end);
    first = end;
  }
}

/**
 * Return the mean error of the first 1, 2 .. rows; ties are averaged over random orders.
 *
 * @param {Uint32Array} rows
 * @param {Float64Array} values
 * @param {Float64Array} errors
 */
function meansOf(rows, values, errors) {
  const means = new Float64Array(rows.length);
  let sum = 0;
  runs(rows, values, (first, end) => {
    let total = 0;
    for (let i = first; i < end; i++) total += errors[rows[i]];
    for (let i = first; i < end; i++) means[i] = (sum += total / (end - first)) / (i + 1);
  });
  return means;
}

const mean = (/** @type {Float64Array} */ values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Return the mean error of the remaining edges after removal by std and by error, and AUSE. */
function sparsification(/** @type {PairsAt} */ at) {
  const { sigma, error } = at.pairs;
  const bySigma = kept(at, sigma),
    byError = kept(at, error);
  const own = meansOf(bySigma, sigma, error),
    best = meansOf(byError, error, error);
  const random = byError.length ? best[byError.length - 1] : NaN;
  const a = mean(own),
    b = mean(best);
  return {
    own: own.reverse(),
    best: best.reverse(),
    random,
    ause: random - b > 1e-12 * Math.abs(random) ? (a - b) / (random - b) : NaN,
  };
}

/** Return root mean squares of std and error in bins with equally many edges, Spearman's correlation, and edges. */
function sigmaError(/** @type {PairsAt} */ at) {
  const { sigma, error } = at.pairs;
  const rows = kept(at, sigma),
    n = rows.length;
  const across = [],
    up = [];
  let from = 0;
  for (let bin = 1; bin <= SIGMA_BINS && n; bin++) {
    let end = n;
    if (bin < SIGMA_BINS) {
      // the first value at or above the interpolated quantile
      const below = Math.floor((bin * (n - 1)) / SIGMA_BINS),
        rest = (bin * (n - 1)) % SIGMA_BINS;
      const low = sigma[rows[below]],
        high = sigma[rows[below + (rest > 0 ? 1 : 0)]];
      const edge = low + (high - low) * (rest / SIGMA_BINS);
      end = from;
      while (end < n && sigma[rows[end]] < edge) end++;
    }
    let variances = 0,
      squares = 0;
    for (let i = from; i < end; i++) {
      variances += sigma[rows[i]] ** 2;
      squares += error[rows[i]] ** 2;
    }
    if (end > from) {
      across.push(Math.sqrt(variances / (end - from)));
      up.push(Math.sqrt(squares / (end - from)));
    }
    from = end;
  }
  return { across, up, rows, spearman: spearman(rows, sigma, kept(at, error), error) };
}

/**
 * @param {Uint32Array} byX
 * @param {Float64Array} x
 * @param {Uint32Array} byY
 * @param {Float64Array} y
 */
function spearman(byX, x, byY, y) {
  const n = byX.length,
    ranks = new Float64Array(x.length);
  runs(byX, x, (first, end) => {
    for (let i = first; i < end; i++) ranks[byX[i]] = (first + end - n) / 2;
  });
  let xx = 0,
    yy = 0,
    xy = 0;
  runs(byY, y, (first, end) => {
    const rank = (first + end - n) / 2;
    for (let i = first; i < end; i++) {
      const other = ranks[byY[i]];
      xx += other * other;
      yy += rank * rank;
      xy += other * rank;
    }
  });
  return xx * yy > 0 ? xy / Math.sqrt(xx * yy) : NaN;
}

probox.diagnosis = { budget, whatIf, reliability, pairsAt, coverage, pit, sparsification, sigmaError };
