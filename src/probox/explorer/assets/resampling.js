// Images drawn anew and swapped between two results, by the very random numbers that Python has: what intervals and
// tests of differences are made of. What takes long is a generator, done in slices so that the page stays smooth.
"use strict";
(() => {
  const { probox } = window;
  const { NORMAL, REPLICATES, DRAWS, SWAPS, MORE, LEVEL } = probox.constants.RESAMPLING;

  // --- NumPy's generator PCG64: 128 bits in limbs of 24, lowest first ---

  const LIMB = 2 ** 24,
    BACK = 2 ** -24;
  const limbs = (/** @type {string} */ hex) =>
    Array.from({ length: 6 }, (_, i) => parseInt(hex.slice(Math.max(0, 26 - 6 * i), 32 - 6 * i), 16));
  const [m0, m1, m2, m3, m4, m5] = limbs("2360ed051fc65da44385df649fccf645");

  class PCG64 {
    /** @param {GeneratorState} start */
    constructor([state, increment]) {
      this.x = Float64Array.from(limbs(state));
      this.c = Float64Array.from(limbs(increment));
      this.low = 0; // 64 random bits, as two halves
      this.high = 0;
      this.kept = false; // whether the high half is still to be had
    }

    /** Make the next 64 bits. */
    step() {
      const { x, c } = this;
      const x0 = x[0],
        x1 = x[1],
        x2 = x[2],
        x3 = x[3],
        x4 = x[4],
        x5 = x[5];
      // No sum is beyond 2^53, so all of it is exact.
      let sum = x0 * m0 + c[0],
        over = Math.floor(sum * BACK);
      const y0 = sum - over * LIMB;
      sum = x0 * m1 + x1 * m0 + c[1] + over;
      over = Math.floor(sum * BACK);
      const y1 = sum - over * LIMB;
      sum = x0 * m2 + x1 * m1 + x2 * m0 + c[2] + over;
      over = Math.floor(sum * BACK);
      const y2 = sum - over * LIMB;
      sum = x0 * m3 + x1 * m2 + x2 * m1 + x3 * m0 + c[3] + over;
      over = Math.floor(sum * BACK);
      const y3 = sum - over * LIMB;
      sum = x0 * m4 + x1 * m3 + x2 * m2 + x3 * m1 + x4 * m0 + c[4] + over;
      over = Math.floor(sum * BACK);
      const y4 = sum - over * LIMB;
      sum = x0 * m5 + x1 * m4 + x2 * m3 + x3 * m2 + x4 * m1 + x5 * m0 + c[5] + over;
      const y5 = sum - Math.floor(sum / 256) * 256;
      x[0] = y0;
      x[1] = y1;
      x[2] = y2;
      x[3] = y3;
      x[4] = y4;
      x[5] = y5;
      const top = y4 | (y5 << 24);
      let low = (y0 | (y1 << 24)) ^ ((y2 >>> 16) | (y3 << 8)),
        high = ((y1 >>> 8) | (y2 << 16)) ^ top;
      let turn = top >>> 26;
      if (turn >= 32) {
        [low, high] = [high, low];
        turn -= 32;
      }
      this.low = (turn ? (low >>> turn) | (high << (32 - turn)) : low) >>> 0;
      this.high = (turn ? (high >>> turn) | (low << (32 - turn)) : high) >>> 0;
    }

    next32() {
      if (this.kept) {
        this.kept = false;
        return this.high;
      }
      this.step();
      this.kept = true;
      return this.low;
    }

    /**
     * Return a whole number below `n` (Lemire's way).
     *
     * @param {number} n
     */
    below(n) {
      if (n === 1) return 0;
      for (;;) {
        const product = this.next32() * n;
        const whole = Math.floor(product / 2 ** 32);
        const rest = product - whole * 2 ** 32;
        if (rest >= n || rest >= (2 ** 32 - n) % n) return whole;
      }
    }

    /** Return whether the next number between 0 and 1 is below one half. */
    half() {
      this.step();
      return this.high < 2 ** 31;
    }
  }

  /**
   * Make how often each image is drawn in each replicate: a row per image.
   *
   * @param {number} images
   * @returns {Generator<undefined, Uint8Array>}
   */
  function* draws(images) {
    const random = new PCG64(DRAWS);
    const weights = new Uint8Array(images * REPLICATES);
    for (let r = 0; r < REPLICATES; r++) {
      for (let n = 0; n < images; n++) weights[random.below(images) * REPLICATES + r]++;
      if (r % 20 === 19) yield;
    }
    return weights;
  }

  /**
   * Make which images change sides in `count` swaps: a row per eight images, a byte per swap, the first image lowest.
   *
   * @param {number} images
   * @param {GeneratorState} state
   * @param {number} count
   * @returns {Generator<undefined, Uint8Array>}
   */
  function* swaps(images, state, count) {
    const random = new PCG64(state);
    const bits = new Uint8Array(Math.ceil(images / 8) * count);
    for (let s = 0; s < count; s++) {
      for (let i = 0; i < images; i++) if (random.half()) bits[(i >> 3) * count + s] |= 1 << (i & 7);
      if (s % 20 === 19) yield;
    }
    return bits;
  }

  // --- sums of what was drawn or swapped ---

  /**
   * Add an image's value to every replicate's sum.
   *
   * @param {Float64Array} sums
   * @param {Uint8Array} weights
   * @param {number} image
   * @param {number} value
   */
  function addDrawn(sums, weights, image, value) {
    if (!value) return;
    for (let r = 0, at = image * REPLICATES; r < REPLICATES; r++, at++) sums[r] += value * weights[at];
  }

  const table = new Float64Array(256);

  /**
   * Add to every swap's sum the values of the images that it swaps; `images` ascend.
   *
   * Eight images at a time: a swap of them is a byte, and there are 256 sums to choose from.
   *
   * @param {Float64Array} sums
   * @param {Uint8Array} bits
   * @param {number} count
   * @param {number[]} images
   * @param {List} values
   */
  function addSwapped(sums, bits, count, images, values) {
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
      for (let s = 0, at = block * count; s < count; s++, at++) sums[s] += table[bits[at]];
    }
  }

  // --- intervals and p, as `probox.analysis` defines them ---

  /**
   * Return the normal distribution's probability of at most x.
   *
   * @param {number} x
   */
  function normal(x) {
    if (Math.abs(x) > 10) return x > 0 ? 1 : 0;
    let sum = x,
      term = x;
    for (let k = 3; Math.abs(term) > 1e-17 * Math.abs(sum); k += 2) sum += term *= (x * x) / k;
    return Math.min(1, Math.max(0, 0.5 + (sum * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI)));
  }

  /** Return Student's quantile where the normal one has z. */
  const student = (/** @type {number} */ z, /** @type {number} */ n) =>
    z +
    (z ** 3 + z) / 4 / n +
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96 / n ** 2 +
    (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384 / n ** 3;

  /**
   * @param {Float64Array} ascending
   * @param {number} q
   */
  function quantile(ascending, q) {
    const place = q * (ascending.length - 1),
      before = Math.floor(place);
    const low = ascending[before],
      high = ascending[Math.min(before + 1, ascending.length - 1)];
    return low + (place - before) * (high - low);
  }

  /**
   * Return the interval that follows from replicates, or null; shares end at 0 and 1, counts at 0.
   *
   * @param {number} value
   * @param {Float64Array} replicates
   * @param {number} images
   * @param {string} [unit]
   * @returns {Ends | null}
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
   * Return the share of swaps that do as much as the difference, which is one of them; `images` hold what it is about.
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

  /**
   * Return p by Holm's correction; NaN stays and is no test.
   *
   * @param {number[]} p
   */
  function holm(p) {
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

  /** Whether a difference may be claimed. */
  const claimed = (/** @type {number} */ adjusted, /** @type {Ends | null} */ between) =>
    adjusted <= 1 - LEVEL + 1e-12 && between !== null && (between.low > 0 || between.high < 0);

  /**
   * Do a generator's work a few milliseconds at a time, then `done(result)`; return a function that stops it.
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

  /** The draws and swaps of a number of images, made when first asked for. */
  class Samples {
    /** @type {Uint8Array | undefined} */
    weights;
    /** @type {Swaps[] | undefined} */
    swaps;

    /**
     * @param {number} images
     * @param {number} classes
     */
    constructor(images, classes) {
      this.images = images;
      // Holm's p of a class is p times all classes: with so many swaps a class needs no luck to be claimed.
      this.more = Math.max(0, Math.ceil((2 * classes) / (1 - LEVEL)) - REPLICATES);
    }

    /** @returns {Generator<undefined, Uint8Array>} */
    *drawn() {
      return (this.weights ||= yield* draws(this.images));
    }

    /** @returns {Generator<undefined, Swaps[]>} */
    *swapped() {
      this.swaps ||= [
        { bits: yield* swaps(this.images, SWAPS, REPLICATES), count: REPLICATES },
        { bits: yield* swaps(this.images, MORE, this.more), count: this.more },
      ];
      return this.swaps;
    }
  }

  /** @type {Drawing} */
  const drawing = {
    PCG64,
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
})();
