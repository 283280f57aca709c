// The columns of all results, and the numbers computed from them at a label threshold.
const { probox } = window;

/** @type {{ [K in Kind]: new (buffer: ArrayBufferLike) => Kinds[K] }} */
const KINDS = {
  u8: Uint8Array,
  i16: Int16Array,
  u16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  f32: Float32Array,
  f64: Float64Array,
};
const { QUALITIES, SIZES } = probox.constants;
const { IGNORED, TP, FP, FN, DROPPED } = probox.constants.VERDICT;
const KEPT = 4; // cached views per result: the current threshold and others in use

/**
 * Return the typed array of a packed column, [kind, base64].
 *
 * @template {Kind} K
 * @param {Packed<K>} packed
 */
function column([kind, text]) {
  if (Uint8Array.fromBase64) return new KINDS[kind](Uint8Array.fromBase64(text).buffer);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return new KINDS[kind](bytes.buffer);
}

/**
 * @template {object} T
 * @param {T} table
 */
function columns(table) {
  const unpacked = Object.entries(table).map(([name, packed]) => [name, column(packed)]);
  // Object.fromEntries loses the type.
  return /** @type {Unpacked<T>} */ (Object.fromEntries(unpacked));
}

class Store {
  constructor(/** @type {Index} */ index) {
    this.index = index;
    this.classes = index.classes;
    this.images = index.images;
    this.count = index.images.id.length;
    this.rowOfImage = new Map(index.images.id.map((id, row) => [id, row]));
    this.objects = columns(index.objects);
    /** @type {Result[]} */
    this.results = index.results.map((result) => ({
      ...result,
      detections: columns(result.detections),
      pairs: columns(result.pairs),
      events: columns(result.events),
      small: column(result.small),
      unseen: column(result.unseen),
    }));
    /** @type {View[][]} */
    this.cache = index.results.map(() => []); // per result, most recently used first
  }

  /** Return the classes with an object or a detection. */
  usedClasses() {
    const used = new Uint8Array(this.classes.length + 1); // the last one for unknown classes
    for (const { class: numbers } of [this.objects, ...this.results.map((result) => result.detections)]) {
      for (let i = 0; i < numbers.length; i++) used[numbers[i] < 0 ? this.classes.length : numbers[i]] = 1;
    }
    return this.classes.map((_, number) => number).filter((number) => used[number]);
  }

  nameOfClass(/** @type {number} */ number) {
    return number < 0 ? "unknown class" : this.classes[number];
  }

  /** Return result `r` with the detections above `threshold`; null: all detections. */
  view(/** @type {number} */ r, /** @type {number | null} */ threshold) {
    const kept = this.cache[r];
    const at = kept.findIndex((view) => view.threshold === threshold);
    if (at === 0) return kept[0];
    const view = at > 0 ? kept.splice(at, 1)[0] : new View(this, r, threshold);
    kept.unshift(view);
    kept.length = Math.min(kept.length, KEPT);
    return view;
  }
}

/** One result at one threshold: outcomes, matches, and sums over groups. */
class View {
  /** @type {Sums | undefined} */
  _whole;
  /** @type {Row[] | undefined} */
  _perClass;
  /** @type {Row[] | undefined} */
  _perSize;
  /** @type {Row[] | undefined} */
  _perImage;

  constructor(/** @type {Store} */ store, /** @type {number} */ r, /** @type {number | null} */ threshold) {
    const result = store.results[r];
    const { confidence } = result.detections;
    const { events, small } = result;
    const objectOf = result.pairs.object;
    this.store = store;
    this.result = result;
    this.threshold = threshold;
    const n = confidence.length;
    const pair = new Int32Array(result.detections.pair);
    const level = threshold === null ? -1 : Math.fround(threshold);
    // Dropped detections change other matches. Python stored these changes, so the page matches nothing.
    for (let e = 0; e < events.threshold.length && events.threshold[e] <= level; e++) {
      pair[events.detection[e]] = events.pair[e];
    }
    const verdict = new Uint8Array(n);
    const objects = store.objects.class.length;
    const objectDetection = new Int32Array(objects).fill(-1);
    const wrong = new Uint32Array(n),
      right = new Uint32Array(objects);
    let wrongs = 0,
      rights = 0;
    for (let d = 0; d < n; d++) {
      if (!(confidence[d] > level)) {
        verdict[d] = DROPPED;
        pair[d] = -1;
      } else if (pair[d] < 0) {
        verdict[d] = FP;
        wrong[wrongs++] = d;
      } else {
        const object = objectOf[pair[d]];
        objectDetection[object] = d;
        if (small[object]) {
          verdict[d] = IGNORED;
        } else {
          verdict[d] = TP;
          right[rights++] = d;
        }
      }
    }
    const objectVerdict = new Uint8Array(objects);
    for (let o = 0; o < objects; o++) objectVerdict[o] = small[o] ? IGNORED : objectDetection[o] >= 0 ? TP : FN;
    // Rows of true positives, ascending. Most detections are dropped, so sums iterate over these rows only.
    const rows = right.subarray(0, rights),
      rightPair = new Int32Array(rights);
    for (let i = 0; i < rights; i++) rightPair[i] = pair[rows[i]];
    this.pair = pair;
    this.verdict = verdict;
    this.objectDetection = objectDetection;
    this.objectVerdict = objectVerdict;
    this.right = rows;
    this.rightPair = rightPair;
    this.wrong = wrong.slice(0, wrongs);
  }

  /** Return sums over `groups` groups; the columns contain the group of each detection and object, or -1. */
  sums(/** @type {number} */ groups, /** @type {Groups} */ ofDetection, /** @type {Groups} */ ofObject) {
    const { pairs } = this.result,
      { cost } = this.result.detections;
    const { rightPair, wrong, objectVerdict } = this;
    const objectOf = pairs.object;
    const sums = new Sums(groups);
    for (let i = 0; i < wrong.length; i++) {
      const group = ofDetection[wrong[i]];
      if (group < 0) continue;
      sums.FP[group]++;
      sums.cost[group] += cost ? cost[wrong[i]] : 1;
    }
    const groupOf = new Int32Array(rightPair.length);
    for (let i = 0; i < rightPair.length; i++) {
      groupOf[i] = ofObject[objectOf[rightPair[i]]];
      if (groupOf[i] >= 0) sums.TP[groupOf[i]]++;
    }
    for (const quality of QUALITIES) {
      const own = sums[quality],
        values = pairs[quality];
      for (let i = 0; i < groupOf.length; i++) if (groupOf[i] >= 0) own[groupOf[i]] += values[rightPair[i]];
    }
    for (let o = 0; o < objectVerdict.length; o++) {
      const group = ofObject[o];
      if (group < 0) continue;
      sums.objects[group]++;
      if (objectVerdict[o] === FN) sums.FN[group]++;
    }
    return sums;
  }

  /** Return the sums over all images. */
  whole() {
    return (this._whole ||= this.sums(1, zeros(this.verdict.length), zeros(this.objectVerdict.length)));
  }

  total() {
    return this.whole().rows()[0];
  }

  perClass() {
    return (this._perClass ||= this.sums(
      this.store.classes.length,
      this.result.detections.class,
      this.store.objects.class,
    ).rows());
  }

  perSize() {
    const own = ofEachSize(this.result.detections.size),
      there = ofEachSize(this.store.objects.size);
    return (this._perSize ||= SIZES.map((_, size) => this.sums(1, own[size], there[size]).rows()[0]));
  }

  perImage() {
    return (this._perImage ||= this.imageSums().rows());
  }

  /** Return the sums of each image. */
  imageSums() {
    const own = imageOfRows(this.result.detections.offsets);
    return this.sums(this.store.count, own, imageOfRows(this.store.objects.offsets));
  }

  /** Return the five qualities of a matched detection, or null. */
  qualities(/** @type {number} */ d) {
    const p = d < 0 ? -1 : this.pair[d];
    if (p < 0) return null;
    const { pPDQ, spatial, label, foreground, background } = this.result.pairs;
    return {
      pPDQ: pPDQ[p],
      spatial: spatial[p],
      label: label[p],
      foreground: foreground[p],
      background: background[p],
    };
  }

  partner(/** @type {number} */ d) {
    return this.pair[d] < 0 ? -1 : this.result.pairs.object[this.pair[d]];
  }

  /** Return whether a detection is a true positive of another class. */
  wrongClass(/** @type {number} */ d) {
    return (
      d >= 0 && this.verdict[d] === TP && this.result.detections.class[d] !== this.store.objects.class[this.partner(d)]
    );
  }

  /** Return a detection's class name, followed by the true class if it differs. */
  nameOf(/** @type {number} */ d) {
    const name = this.store.nameOfClass(this.result.detections.class[d]);
    if (!this.wrongClass(d)) return name;
    return `${name} (truth: ${this.store.nameOfClass(this.store.objects.class[this.partner(d)])})`;
  }

  /**
   * Return box metrics, or null if they are unknown. boxes.js replaces this method.
   *
   * @returns {BoxView | null}
   */
  boxes() {
    return null;
  }
}

/** Counts, costs and sums of qualities per group. */
class Sums {
  constructor(/** @type {number} */ groups) {
    const column = () => new Float64Array(groups);
    this.TP = column();
    this.FP = column();
    this.FN = column();
    this.objects = column();
    this.cost = column();
    this.pPDQ = column();
    this.spatial = column();
    this.label = column();
    this.foreground = column();
    this.background = column();
  }

  /** Return PDQ and the means over true positives of each group; NaN for empty groups. */
  rows() {
    return Array.from(this.TP, (tp, group) => {
      const counted = tp + this.cost[group] + this.FN[group];
      const mean = (/** @type {Float64Array} */ sums) => (tp ? sums[group] / tp : NaN);
      return {
        PDQ: counted ? this.pPDQ[group] / counted : NaN,
        TP: tp,
        FP: this.FP[group],
        FN: this.FN[group],
        objects: this.objects[group],
        pPDQ: mean(this.pPDQ),
        spatial: mean(this.spatial),
        label: mean(this.label),
        foreground: mean(this.foreground),
        background: mean(this.background),
      };
    });
  }
}

/**
 * Return a function with one cached result per argument, which lives as long as the argument.
 *
 * @template {object} Source
 * @template Column
 * @param {(source: Source) => Column} make
 * @returns {(source: Source) => Column}
 */
function once(make) {
  /** @type {WeakMap<Source, Column>} */
  const made = new WeakMap();
  return (source) => {
    const column = made.get(source) ?? make(source);
    made.set(source, column);
    return column;
  };
}

let zero = new Int8Array(0);
const zeros = (/** @type {number} */ n) => (zero.length >= n ? zero : (zero = new Int8Array(n)));

// Sizes are bits: COCO's ranges include both ends, so an area at a limit has two sizes.
const ofEachSize = once((/** @type {Uint8Array} */ sizes) =>
  SIZES.map((_, size) => {
    const groups = new Int8Array(sizes.length);
    for (let i = 0; i < sizes.length; i++) groups[i] = ((sizes[i] >> size) & 1) - 1;
    return groups;
  }),
);

const imageOfRows = once((/** @type {Uint32Array} */ offsets) => {
  const rows = new Int32Array(offsets[offsets.length - 1] || 0);
  for (let i = 0; i + 1 < offsets.length; i++) rows.fill(i, offsets[i], offsets[i + 1]);
  return rows;
});

probox.once = once;
probox.Store = Store;
probox.View = View;
probox.column = column;
probox.columns = columns;
probox.imageOfRows = imageOfRows;
