// The numbers of the diagnosis at a label threshold: where the points went, whether scores and sigmas are honest.
//
// Nothing is matched here, and what may fall on an edge between two bins was put into its bin before.
const { probox } = window;
const { NOTHING, SCORE_BINS, PIT_BINS, SIGMA_BINS, SHARES } = probox.constants.WHY;
const { FP, TP } = probox.constants.VERDICT;
const EDGES = 4;

/** Return the columns of a result's diagnosis. */
const columnsOf = probox.once((/** @type {Result} */ { why: { scores, pairs, twins } }) => ({
  code: probox.column(scores.code),
  spans: probox.columns(scores.spans),
  pairs: probox.columns(pairs),
  twins: probox.columns(twins),
}));

/** Return the level above which detections count: none is -1, also where pairs cannot follow a threshold. */
const levelOf = (/** @type {Result} */ result, /** @type {number | null} */ threshold) =>
  threshold === null || !result.why.follows ? -1 : Math.fround(threshold);

// --- where the points went ---

/** Return what each pair of a result loses by its label, foreground and background: three numbers in a row each. */
const lossesOf = probox.once((/** @type {Result} */ result) => {
  const { label, foreground, background } = result.pairs;
  const weight = result.convention.label_weight;
  const losses = new Float64Array(3 * label.length);
  for (let p = 0; p < label.length; p++) {
    const factors = [label[p] ** weight, foreground[p] ** (1 - weight), background[p] ** (1 - weight)];
    for (let i = 0; i < 3; i++) {
      // the mean of what it takes over all orders
      const b = factors[(i + 1) % 3],
        c = factors[(i + 2) % 3];
      losses[3 * p + i] = (1 - factors[i]) * (1 / 3 + (b + c) / 6 + (b * c) / 3);
    }
  }
  return losses;
});

/** Return the sum of a view's pairwise qualities, its counts, and what its false positives cost. */
function accounts(/** @type {View} */ view) {
  const { pPDQ, TP, FN, cost } = view.whole();
  return { quality: pPDQ[0], found: TP[0], missed: FN[0], wrong: cost[0] };
}

/**
 * Return shares of 1 that add up to 1: what was reached, and where the rest went; null if there is nothing.
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

/** Return the false positives that repeat the detection of an object that was found, and what they cost. */
function duplicates(/** @type {View} */ view) {
  const { twins } = columnsOf(view.result);
  const { cost } = view.result.detections;
  let count = 0,
    price = 0,
    last = -1;
  for (let i = 0; i < twins.detection.length; i++) {
    // by detection
    const d = twins.detection[i];
    if (d === last || view.verdict[d] !== FP || view.objectVerdict[twins.object[i]] !== TP) continue;
    last = d;
    count++;
    price += cost ? cost[d] : 1;
  }
  return { count, price };
}

/**
 * Return PDQ after repairs that need no new scores. Who is wrong matches nobody, so without them all matches stay.
 */
function whatIf(/** @type {View} */ view) {
  const { quality, found, missed, wrong } = accounts(view);
  const twice = duplicates(view);
  return {
    now: quality / (found + wrong + missed),
    no_false_positives: quality / (found + missed),
    no_duplicates: quality / (found + wrong - twice.price + missed),
    duplicates: twice.count,
  };
}

// --- scores ---

/** Return how many detections are in each bin of scores, how many hit, the sum of scores, and D-ECE. */
function reliability(/** @type {Result} */ result, /** @type {number | null} */ threshold) {
  const { code, spans } = columnsOf(result);
  const { confidence, score } = result.detections;
  const level = levelOf(result, threshold);
  const n = new Float64Array(SCORE_BINS),
    hits = new Float64Array(SCORE_BINS),
    sums = new Float64Array(SCORE_BINS);
  const add = (/** @type {number} */ what, /** @type {number} */ value) => {
    n[what >> 1]++;
    hits[what >> 1] += what & 1;
    sums[what >> 1] += value;
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

// --- sigmas ---

/**
 * Return the pairs of a result at a threshold: which there are, how many can be judged and what was left out.
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
  // Without sigmas `why` says so, and nobody asks for them.
  const all = /** @type {WhyPairs} */ (pairs);
  return { pairs: all, rows, judged, plain, cut, why: why(rows.length, plain, judged) };
}

/** Return why there is no sigma to judge; nothing if there is one. */
function why(/** @type {number} */ there, /** @type {number} */ plain, /** @type {number} */ judged) {
  if (!there) return "no pairs to judge";
  if (plain === there) return "plain boxes: no sigma to judge";
  return judged ? "" : "all edges lie on the image's border";
}

/**
 * Count values below `size` of the pairs' edges, or of one of them.
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

/** Return which share of truths lies in regions that should hold 0, 1 .. 100 %: of edges (or one), and of boxes. */
function coverage(/** @type {PairsAt} */ at, /** @type {number | null} */ edge = null) {
  const edges = shares(histogram(at, at.pairs.level, SHARES, edge));
  const boxes = shares(histogram(at, at.pairs.box, SHARES, null, 1));
  return { edges: running(edges.shares), boxes: running(boxes.shares), judged: edges.total, dense: boxes.total };
}

/** Return the shares of an edge's PIT values in bins, and how many there are. */
const pit = (/** @type {PairsAt} */ at, /** @type {number} */ edge) =>
  shares(histogram(at, at.pairs.pit, PIT_BINS, edge));

/** Return edges with a sigma and a side, in the order of one of their columns. */
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
 * Call with the first and the one after the last of each run of equal values.
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
 * Return the mean error of the first 1, 2 .. rows, those of equal value in random order.
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

/** Return the mean error that is left when the k most unsure edges are gone, in the own and the true order; AUSE. */
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

/** Return root mean squares of sigma and error in bins of equal mass of sigma, Spearman's correlation, and edges. */
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
      // the first that is not below the quantile, which lies between two values
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
