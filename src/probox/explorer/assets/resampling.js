// Bootstrap and permutation over images, with the same random numbers as Python. Slow functions are generators, run in
// slices so that the page stays responsive.
const { probox } = window;
const { NORMAL, REPLICATES, DRAWS, SWAPS, LEVEL } = probox.constants.RESAMPLING;

// --- random words: `probox.analysis.resampling.random_words` ---

/** Mix all bits of a word with a bijection (lowbias32, C. Wellons). */
function mix(/** @type {number} */ word) {
  word = Math.imul(word ^ (word >>> 16), 0x7feb352d);
  word = Math.imul(word ^ (word >>> 15), 0x846ca68b);
  return word ^ (word >>> 16);
}

/** Return a function of a replicate and an image that returns a random word from 0 to 2^32 - 1. */
function randomWords(/** @type {number} */ key, /** @type {number} */ images) {
  const mixed = Int32Array.from({ length: images }, (_, i) => mix(i + 0x9e3779b9));
  return (/** @type {number} */ replicate) => {
    const own = mix(key ^ mix(replicate + 0x9e3779b9));
    return (/** @type {number} */ image) => mix(own ^ mixed[image]) >>> 0;
  };
}

/**
 * Return how often each bootstrap replicate contains each image, a row per image.
 *
 * @param {number} images
 * @returns {Generator<undefined, Uint8Array>}
 */
function* draws(images) {
  const words = randomWords(DRAWS, images);
  const weights = new Uint8Array(images * REPLICATES);
  for (let r = 0; r < REPLICATES; r++) {
    const word = words(r);
    for (let n = 0; n < images; n++) weights[Math.floor((word(n) * images) / 2 ** 32) * REPLICATES + r]++;
    if (r % 20 === 19) yield;
  }
  return weights;
}

/**
 * Return which images `count` permutations swap: a row per eight images, a byte per permutation, first image lowest.
 *
 * @param {number} images
 * @param {number} count
 * @returns {Generator<undefined, Swaps>}
 */
function* swaps(images, count) {
  const words = randomWords(SWAPS, images);
  const bits = new Uint8Array(Math.ceil(images / 8) * count);
  for (let s = 0; s < count; s++) {
    const word = words(s);
    for (let i = 0; i < images; i++) if (word(i) < 2 ** 31) bits[(i >> 3) * count + s] |= 1 << (i & 7);
    if (s % 20 === 19) yield;
  }
  return { bits, count };
}

// --- sums of replicates and permutations ---

/**
 * Add an image's value to the sum of each replicate.
 *
 * @type {(sums: Float64Array, weights: Uint8Array, image: number, value: number) => void}
 */
function addDrawn(sums, weights, image, value) {
  if (!value) return;
  for (let r = 0, at = image * REPLICATES; r < REPLICATES; r++, at++) sums[r] += value * weights[at];
}

const table = new Float64Array(256);

/**
 * Add the values of swapped images to the sum of each permutation; `images` ascend.
 *
 * Eight images are one byte, and a table contains the 256 possible sums.
 *
 * @param {Float64Array} sums one per permutation
 * @param {Swaps} swaps
 * @param {number[]} images
 * @param {List} values
 */
function addSwapped(sums, { bits, count }, images, values) {
  for (let n = 0; n < images.length;) {
    const block = images[n] >> 3;
    table[0] = 0;
    let filled = 1,
      any = false;
    for (let bit = 0; bit < 8; bit++, filled *= 2) {
      let value = 0;
      if (n < images.length && images[n] === 8 * block + bit) value = values[n++];
      any ||= value !== 0;
      for (let k = 0; k < filled; k++) table[filled + k] = table[k] + value;
    }
    if (!any) continue;
    for (let s = 0, at = block * count; s < sums.length; s++, at++) sums[s] += table[bits[at]];
  }
}

// --- intervals and p-values, as defined in `probox.analysis` ---

/** Return the standard normal distribution function at x. */
function normal(/** @type {number} */ x) {
  if (Math.abs(x) > 10) return x > 0 ? 1 : 0;
  let sum = x,
    term = x;
  for (let k = 3; Math.abs(term) > 1e-17 * Math.abs(sum); k += 2) sum += term *= (x * x) / k;
  return Math.min(1, Math.max(0, 0.5 + (sum * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI)));
}

/** Return Student's quantile at the level of the normal quantile z. */
const student = (/** @type {number} */ z, /** @type {number} */ n) =>
  z +
  (z ** 3 + z) / 4 / n +
  (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96 / n ** 2 +
  (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384 / n ** 3;

function quantile(/** @type {Float64Array} */ ascending, /** @type {number} */ q) {
  const place = q * (ascending.length - 1),
    before = Math.floor(place);
  const low = ascending[before],
    high = ascending[Math.min(before + 1, ascending.length - 1)];
  return low + (place - before) * (high - low);
}

/**
 * Return the interval of replicates, or null; fractions stay within 0 and 1, counts above 0.
 *
 * @type {(value: number, replicates: Float64Array, images: number, unit?: string) => Ends | null}
 */
function interval(value, replicates, images, unit = "plain") {
  const defined = Float64Array.from(replicates).filter(Number.isFinite).sort();
  if (images < 2 || defined.length < 2 || !Number.isFinite(value)) return null;
  let mean = 0;
  for (const one of defined) mean += one / defined.length;
  const reach = student(NORMAL, images - 1) * Math.sqrt(images / (images - 1));
  const [low, high] = [-reach, reach].map((z) => value + quantile(defined, normal(z)) - mean);
  const least = unit === "plain" ? -Infinity : Math.min(defined[0], value, 0);
  const most = unit === "per cent" ? Math.max(defined[defined.length - 1], value, 1) : Infinity;
  return { low: Math.max(low, least), high: Math.min(high, most) };
}

/**
 * Return the fraction of permutations with at least this difference, the observed one included.
 *
 * The result is at least 2^(1 - images): there are no more distinct permutations.
 *
 * @param {number} difference
 * @param {List & Iterable<number>} swapped
 * @param {number} images
 */
function pValue(difference, swapped, images) {
  if (!Number.isFinite(difference) || !swapped.length) return NaN;
  const limit = Math.abs(difference) - 1e-12 * Math.max(1, Math.abs(difference));
  let many = 1;
  for (const one of swapped) many += Math.abs(one) < limit ? 0 : 1;
  return Math.max(many / (swapped.length + 1), images ? 2 ** (1 - images) : 1);
}

/** Return p-values with Holm's correction; NaN stays NaN and does not count as a test. */
function holm(/** @type {number[]} */ p) {
  const order = p
    .map((_, n) => n)
    .filter((n) => !Number.isNaN(p[n]))
    .sort((a, b) => p[a] - p[b]);
  const adjusted = p.map(() => NaN);
  let highest = 0;
  order.forEach((n, rank) => {
    adjusted[n] = highest = Math.max(highest, Math.min(1, (order.length - rank) * p[n]));
  });
  return adjusted;
}

/** Return whether a difference is significant: small p, and an interval that excludes 0. */
const claimed = (/** @type {number} */ adjusted, /** @type {Ends | null} */ between) =>
  adjusted <= 1 - LEVEL + 1e-12 && between !== null && (between.low > 0 || between.high < 0);

/**
 * Run a generator a few milliseconds at a time, then call `done(result)`; return a function that stops it.
 *
 * @template T
 * @param {Generator<undefined, T>} work
 * @param {(result: T) => void} done
 */
function inSlices(work, done) {
  let timer = 0;
  const slice = () => {
    const end = performance.now() + 10;
    let step;
    do step = work.next();
    while (!step.done && performance.now() < end);
    if (step.done) done(step.value);
    else timer = setTimeout(slice, 0);
  };
  timer = setTimeout(slice, 0);
  return () => clearTimeout(timer);
}

/** Bootstrap weights and permutations of a number of images, computed on first use. */
class Samples {
  /** @type {Uint8Array | undefined} */
  weights;
  /** @type {Swaps | undefined} */
  swaps;

  constructor(/** @type {number} */ images, /** @type {number} */ classes) {
    this.images = images;
    // Holm multiplies p by up to the number of classes, so small p-values need more permutations.
    this.count = Math.max(REPLICATES, Math.ceil((2 * classes) / (1 - LEVEL)));
  }

  /** @returns {Generator<undefined, Uint8Array>} */
  *drawn() {
    return (this.weights ||= yield* draws(this.images));
  }

  /** @returns {Generator<undefined, Swaps>} */
  *swapped() {
    return (this.swaps ||= yield* swaps(this.images, this.count));
  }
}

/** @type {Drawing} */
const drawing = {
  Samples,
  addDrawn,
  addSwapped,
  claimed,
  draws,
  holm,
  inSlices,
  interval,
  normal,
  pValue,
  quantile,
  swaps,
};
probox.resampling = /** @type {Resampling} */ (drawing); // comparing.js adds the rest
