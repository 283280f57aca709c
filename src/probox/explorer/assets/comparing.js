// Confidence intervals of PDQ and its parts, and differences between two results, equal to `probox.bootstrap` and
// `probox.compare`. Generators return the numbers; nothing here draws on the page.
const { probox } = window;
const { QUALITIES, RESAMPLING } = probox.constants;
const { TP, FP, FN } = probox.constants.VERDICT;
const { LEVEL, REPLICATES } = RESAMPLING;
const { count } = probox;
const { addDrawn, addSwapped, claimed, holm, interval, pValue } = probox.resampling;

const COUNTS = ["TP", "FP", "FN"];
/** Keys of the columns with intervals. */
const KEYS = ["PDQ", ...QUALITIES, ...COUNTS];
const unitOf = (/** @type {string} */ key) => (COUNTS.includes(key) ? "count" : "per cent");

/** Return the sums of PDQ for each image; `cost` is the cost of false positives under the convention. */
function sumsPerImage(/** @type {View} */ view) {
  const sums = view.imageSums();
  const { TP, FP, FN, pPDQ, spatial, label, foreground, background } = sums;
  const cost = view.result.detections.cost ? sums.cost : FP;
  return { pPDQ, spatial, label, foreground, background, TP, FP, FN, cost };
}

/** Return the value of a column from sums, for replicate `n`. */
function numberAt(/** @type {Record<string, List>} */ sums, /** @type {string} */ key, /** @type {number} */ n) {
  if (key === "PDQ") return sums.pPDQ[n] / (sums.TP[n] + sums.cost[n] + sums.FN[n]);
  return COUNTS.includes(key) ? sums[key][n] : sums[key][n] / sums.TP[n];
}

const numbers = (/** @type {ImageColumns} */ sums, /** @type {number} */ length) =>
  Object.fromEntries(KEYS.map((key) => [key, Float64Array.from({ length }, (_, n) => numberAt(sums, key, n))]));

/**
 * Apply `work` to each distinct array of sums; FP and its cost may be the same array.
 *
 * @param {ImageColumns} sums
 * @param {(values: Float64Array, name: string) => Generator<undefined, Float64Array>} work
 * @returns {Generator<undefined, ImageColumns>}
 */
function* eachSum(sums, work) {
  /** @type {Map<Float64Array, Float64Array>} */
  const done = new Map();
  /** @type {ImageColumns} */
  const made = {};
  for (const [name, values] of Object.entries(sums)) {
    made[name] = done.get(values) ?? (yield* work(values, name));
    done.set(values, made[name]);
  }
  return made;
}

const total = (/** @type {Float64Array | number[]} */ values) => {
  let sum = 0;
  for (const value of values) sum += value;
  return sum;
};
const totals = (/** @type {ImageColumns} */ sums) =>
  Object.fromEntries(Object.entries(sums).map(([name, values]) => [name, [total(values)]]));

/**
 * Return the values of a result at a threshold, those of the bootstrap replicates, and their intervals.
 *
 * @param {Store} store
 * @param {Samples} samples
 * @param {number} r
 * @param {number | null} threshold
 * @returns {Generator<undefined, Sampled>}
 */
function* sampled(store, samples, r, threshold) {
  const view = store.view(r, threshold);
  const sums = sumsPerImage(view);
  const whole = totals(sums);
  const values = Object.fromEntries(KEYS.map((key) => [key, numberAt(whole, key, 0)]));
  const weights = yield* samples.drawn();
  const drawn = yield* eachSum(sums, function* (own) {
    const added = new Float64Array(REPLICATES);
    for (let i = 0; i < store.count; i++) {
      addDrawn(added, weights, i, own[i]);
      if (i % 500 === 499) yield;
    }
    return added;
  });
  const replicates = numbers(drawn, REPLICATES);
  const intervals = Object.fromEntries(
    KEYS.map((key) => [key, interval(values[key], replicates[key], store.count, unitOf(key))]),
  );
  return { sums, values, replicates, intervals };
}

/**
 * Return the differences after each permutation, from the sums of both results.
 *
 * @param {ImageColumns} a
 * @param {ImageColumns} b
 * @param {Samples} samples
 * @returns {Generator<undefined, ImageColumns>}
 */
function* swappedNumbers(a, b, samples) {
  const swaps = yield* samples.swapped();
  const all = Array.from({ length: samples.images }, (_, i) => i);
  const moved = yield* eachSum(a, function* (own, name) {
    const added = new Float64Array(REPLICATES);
    const moves = own.map((value, i) => b[name][i] - value);
    addSwapped(added, swaps, all, moves);
    yield;
    return added;
  });
  /** @type {[ImageColumns, ImageColumns]} */
  const sides = [{}, {}];
  for (const name of Object.keys(a)) {
    const [first, second] = [total(a[name]), total(b[name])];
    sides[0][name] = moved[name].map((value) => first + value);
    sides[1][name] = moved[name].map((value) => second - value);
  }
  const [first, second] = sides.map((sums) => numbers(sums, REPLICATES));
  return Object.fromEntries(KEYS.map((key) => [key, first[key].map((value, n) => value - second[key][n])]));
}

/**
 * Return the images of each class, and per image the numerator and denominator of its PDQ for both views. A match counts
 * under its object's class.
 */
function classParts(/** @type {Store} */ store, /** @type {[View, View]} */ views) {
  /** @type {ClassPart[]} */
  const parts = store.classes.map(() => ({ images: [], above: [[], []], below: [[], []] }));
  const placeOf = (/** @type {number} */ label, /** @type {number} */ image) => {
    const { images, above, below } = parts[label];
    if (!images.length || images[images.length - 1] !== image) {
      images.push(image);
      for (const column of [...above, ...below]) column.push(0);
    }
    return images.length - 1;
  };
  const { offsets } = store.objects;
  for (let image = 0; image < store.count; image++) {
    for (let o = offsets[image]; o < offsets[image + 1]; o++) {
      const label = store.objects.class[o],
        place = placeOf(label, image);
      views.forEach((view, side) => {
        if (view.objectVerdict[o] === FN) parts[label].below[side][place]++;
      });
    }
    views.forEach((view, side) => {
      const { detections, pairs } = view.result;
      for (let d = detections.offsets[image]; d < detections.offsets[image + 1]; d++) {
        if (view.verdict[d] === TP) {
          const label = store.objects.class[pairs.object[view.pair[d]]],
            place = placeOf(label, image);
          parts[label].above[side][place] += pairs.pPDQ[view.pair[d]];
          parts[label].below[side][place]++;
        } else if (view.verdict[d] === FP && detections.class[d] >= 0) {
          const label = detections.class[d],
            place = placeOf(label, image);
          parts[label].below[side][place] += detections.cost ? detections.cost[d] : 1;
        }
      }
    });
  }
  return parts;
}

/**
 * Return the difference of one class, or null if one result has no PDQ for it.
 *
 * @param {ClassPart} part
 * @param {Uint8Array} weights
 * @param {Swaps} swaps
 * @returns {Generator<undefined, Omit<ClassDifference, "adjusted" | "claimed"> | null>}
 */
function* classDifference({ images, above, below }, weights, swaps) {
  const sums = [above[0], below[0], above[1], below[1]];
  const [a, b, c, d] = sums.map(total);
  if (!b || !d) return null;
  /** @type {Float64Array[]} */
  const drawn = [];
  for (const own of sums) {
    const added = new Float64Array(REPLICATES);
    for (let n = 0; n < images.length; n++) {
      addDrawn(added, weights, images[n], own[n]);
      if (n % 500 === 499) yield;
    }
    drawn.push(added);
  }
  const replicates = drawn[0].map((value, r) => value / drawn[1][r] - drawn[2][r] / drawn[3][r]);
  const moved = [above, below].map(([first, second]) => {
    const added = new Float64Array(swaps.count);
    const moves = first.map((value, n) => second[n] - value);
    addSwapped(added, swaps, images, moves);
    return added;
  });
  yield;
  const [up, down] = moved;
  const swapped = up.map((_, s) => (a + up[s]) / (b + down[s]) - (c - up[s]) / (d - down[s]));
  const difference = a / b - c / d;
  return {
    first: a / b,
    second: c / d,
    difference,
    between: interval(difference, replicates, images.length),
    p: pValue(difference, swapped, images.length),
    images: images.length,
  };
}

/**
 * Return the differences of two results at a threshold: of each column, and of PDQ for each class.
 *
 * @param {Store} store
 * @param {Samples} samples
 * @param {[a: number, b: number]} pair
 * @param {number | null} threshold
 * @param {[Sampled, Sampled]} both
 * @returns {Generator<undefined, Compared>}
 */
function* compared(store, samples, [a, b], threshold, [first, second]) {
  const swapped = yield* swappedNumbers(first.sums, second.sums, samples);
  const columns = Object.fromEntries(
    KEYS.map((key) => {
      const difference = first.values[key] - second.values[key];
      const replicates = first.replicates[key].map((value, r) => value - second.replicates[key][r]);
      const between = interval(difference, replicates, store.count);
      const p = pValue(difference, swapped[key], store.count);
      return [
        key,
        {
          first: first.values[key],
          second: second.values[key],
          difference,
          between,
          p,
          claimed: claimed(p, between),
        },
      ];
    }),
  );
  const parts = classParts(store, [store.view(a, threshold), store.view(b, threshold)]);
  yield;
  const weights = yield* samples.drawn(),
    swaps = yield* samples.swapped();
  const found = [];
  for (const part of parts) found.push(yield* classDifference(part, weights, swaps));
  const adjusted = holm(found.map((one) => one?.p ?? NaN));
  const classes = found.map(
    (one, n) => one && { ...one, adjusted: adjusted[n], claimed: claimed(adjusted[n], one.between) },
  );
  return { columns, classes };
}

// --- words ---

const pText = (/** @type {number} */ p) => (p < 0.0005 ? "p < 0.001" : `p = ${p.toFixed(3)}`);

/**
 * Return the decimals of an interval, as in Python: half its width has two significant digits.
 */
function digitsOf(/** @type {number} */ low, /** @type {number} */ high) {
  const half = Number(((100 * (high - low)) / 2).toFixed(9));
  return half > 0 ? Math.min(Math.max(1 - Math.floor(Math.log10(half)), 0), 4) : 2;
}

/**
 * Return a sentence about a difference of PDQ, equal to Python's (`probox.analysis.comparison_text`).
 *
 * @type {Comparing["conclusion"]}
 */
const conclusion = ([a, b], found, images) => {
  if (images < 2 || !found)
    return `Nothing can be concluded about ${a} and ${b} from ${images} image${images === 1 ? "" : "s"}.`;
  const { difference, between, p, claimed } = found;
  if (!Number.isFinite(difference)) return "In PDQ one value is not finite.";
  if (difference === 0 && between?.low === 0 && between.high === 0) return "In PDQ they are equal.";
  const many = `${count(images)} images`;
  const sign = claimed && difference < 0 ? -1 : 1;
  const points = (/** @type {number} */ value, /** @type {number} */ digits) =>
    (Number((100 * value).toFixed(digits)) + 0).toFixed(digits);
  let excludes = false;
  let amount = `${points(sign * difference, 2)} points (no interval, ${many})`;
  if (between) {
    const [low, high] = [sign * between.low, sign * between.high].sort((x, y) => x - y);
    const digits = digitsOf(low, high);
    excludes = Number(points(low, digits)) > 0 || Number(points(high, digits)) < 0;
    amount = `${points(sign * difference, digits)} points (${100 * LEVEL}% CI ${points(low, digits)} to ${points(high, digits)}, ${pText(p)}, ${many})`;
  }
  if (!claimed) {
    const reason = excludes
      ? ` by the permutation test (p above ${(1 - LEVEL).toFixed(2)}), although the interval excludes 0`
      : "";
    return `In PDQ no difference can be claimed${reason}: ${a} minus ${b} is ${amount}.`;
  }
  const [ahead, behind] = difference > 0 ? [a, b] : [b, a];
  return `${ahead} is better than ${behind} in PDQ by ${amount}.`;
};

/** @type {Comparing} */
const comparing = { KEYS, compared, conclusion, pText, sampled, unitOf };
Object.assign(probox.resampling, comparing);
