// COCO's average precision and LRP at a label threshold, from the outcome of each box.
//
// The index contains the outcomes of matching and, as events, their changes at thresholds (see explorer/payload.py). The
// numbers therefore equal a new evaluation at any threshold.
const { probox } = window;
const { RECALLS, OVERLAPS, AVERAGED, GRID, RANGES } = probox.constants.BOXES;
const { IOUS } = probox.constants;
const EPSILON = Number.EPSILON; // COCO's, against 0 / 0

/**
 * Unpack one result's outcomes.
 *
 * @type {(result: Result, packed: PackedBoxes) => UnpackedBoxes}
 */
function unpack(result, packed) {
  const { order, starts, cuts, late, objects } = packed;
  const own = probox.columns({ order, starts, cuts, late, objects });
  const first = outcomes(packed),
    later = outcomes(packed.events);
  const { confidence, size } = result.detections;
  const n = own.order.length;
  const confidences = new Float32Array(n),
    wrong = new Uint8Array(n);
  let sorted = true; // whether detections above a threshold always come first in their class
  for (let c = 0; c + 1 < own.starts.length; c++) {
    for (let i = own.starts[c]; i < own.starts[c + 1]; i++) {
      const d = own.order[i];
      confidences[i] = confidence[d];
      if (i > own.starts[c] && confidences[i] > confidences[i - 1]) sorted = false;
      // Without a match it is a false positive of its own sizes, and of all sizes if it has one.
      wrong[i] = (size[d] ? 1 : 0) | (size[d] << 1);
    }
  }
  for (let i = 0; i < own.late.length; i++) wrong[own.late[i]] = 0;
  // Places with an outcome at any threshold; the entry is -1 until an event sets it.
  const place = joined(Uint32Array, first.place, later.place)
    .sort()
    .filter((at, i, all) => !i || at !== all[i - 1]);
  /** @type {Map<number, number>} */
  const index = new Map();
  place.forEach((at, i) => index.set(at, i));
  const indexOf = (/** @type {number} */ at) => /** @type {number} */ (index.get(at)); // every place has an index
  const entry = new Int32Array(place.length).fill(-1);
  first.place.forEach((at, e) => {
    entry[indexOf(at)] = e;
  });
  const events = {
    threshold: probox.column(packed.events.threshold),
    place: later.place.map(indexOf),
    first: first.place.length,
  };
  const before = place.map((at) => wrong[at]);
  for (let i = 0; i < place.length; i++) wrong[place[i]] = 0; // their outcomes count instead
  const values = OVERLAPS.map(() => new Float64Array(place.length));
  return {
    ...own,
    confidences,
    wrong,
    sorted,
    place,
    entry,
    before,
    events,
    values,
    totals: [],
    matched: joined(Uint16Array, first.matched, later.matched),
    ignored: joined(Uint16Array, first.ignored, later.ignored),
    iou: joined(Float64Array, first.iou, later.iou),
  };
}

/**
 * Return two columns as one.
 *
 * @template {Uint16Array | Uint32Array | Float64Array} Column
 * @param {new (length: number) => Column} Kind
 * @param {Column} first
 * @param {Column} later
 */
function joined(Kind, first, later) {
  const both = new Kind(first.length + later.length);
  both.set(first);
  both.set(later, first.length);
  return both;
}

/** Return the entries of the outcomes above a threshold. */
function entriesAbove(/** @type {UnpackedBoxes} */ own, /** @type {number} */ level) {
  const { place, threshold, first } = own.events;
  if (!threshold.length || threshold[0] > level) return own.entry;
  const entry = new Int32Array(own.entry);
  for (let e = 0; e < threshold.length && threshold[e] <= level; e++) entry[place[e]] = first + e;
  return entry;
}

/**
 * Return the number of false positives without outcome among the first 0, 1 .. n, in one range of sizes.
 *
 * @param {UnpackedBoxes} own
 * @param {number} level
 * @param {number} range
 */
function wrongTotals({ confidences, wrong, sorted, totals }, level, range) {
  if (sorted && totals[range]) return totals[range];
  const sums = new Uint32Array(confidences.length + 1);
  let sum = 0;
  for (let i = 0; i < confidences.length; i++) {
    // In sorted classes, dropped detections come last, and their sums are not used.
    if (sorted || confidences[i] > level) sum += (wrong[i] >> range) & 1;
    sums[i + 1] = sum;
  }
  return (totals[range] = sums);
}

/** Return outcomes with an IoU in every cell: that of matches at IoU 0.5, else NaN. */
function outcomes(/** @type {PackedOutcomes} */ packed) {
  const [place, matched, ignored] = [
    probox.column(packed.place),
    probox.column(packed.matched),
    probox.column(packed.ignored),
  ];
  const iou = probox.column(packed.iou);
  const spread = new Float64Array(matched.length).fill(NaN);
  let next = 0;
  for (let cell = 0; cell < matched.length; cell++) if (matched[cell] & ~ignored[cell] & 1) spread[cell] = iou[next++];
  return { place, matched, ignored, iou: spread };
}

/**
 * Return the first index from `begin` on whose value is not above a level; values descend.
 *
 * @param {Float32Array} values
 * @param {number} level
 * @param {number} begin
 * @param {number} end
 */
function firstNotAbove(values, level, begin, end) {
  while (begin < end) {
    const middle = (begin + end) >> 1;
    if (values[middle] > level) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

/** @type {Map<number, Int32Array>} */
const reached = new Map();

/** Return the index of the true positive that reaches each recall, for a number of objects. */
function needed(/** @type {number} */ objects) {
  let counts = reached.get(objects);
  if (!counts) {
    let k = 0;
    counts = Int32Array.from(RECALLS, (recall) => {
      while (k < objects && (k + 1) / objects < recall) k++;
      return k;
    });
    reached.set(objects, counts);
  }
  return counts;
}

// Counters of a class: true positives and false positives with an outcome per IoU threshold; on LRP's grid, true
// positives, false positives and the sum of 1 - IoU.
const right = new Uint32Array(OVERLAPS.length),
  astray = new Uint32Array(OVERLAPS.length);
const tp = new Uint32Array(GRID.length),
  fp = new Uint32Array(GRID.length),
  error = new Float64Array(GRID.length);
function keep(/** @type {number} */ s, /** @type {number} */ wrong, /** @type {number} */ misplaced) {
  tp[s] = right[0];
  fp[s] = wrong + astray[0];
  error[s] = misplaced;
}

/** @typedef {Exclude<keyof BoxNumbers, "precision" | "recall">} Measure */
/** @type {Measure[]} */
const MEASURES = ["mAP", "AP50", "AP75", "moLRP", "moLRP_loc", "moLRP_fp", "moLRP_fn"]; // the keys of their columns

/**
 * Return an object with a value for each metric.
 *
 * @template T
 * @param {(key: Measure) => T} make
 */
const perMeasure = (make) =>
  /** @type {Record<Measure, T>} */ (Object.fromEntries(MEASURES.map((key) => [key, make(key)])));

/** Box metrics of one result at one threshold for one range of sizes; range 0 has all sizes. */
class Boxes {
  constructor(/** @type {UnpackedBoxes} */ own, /** @type {number | null} */ threshold, /** @type {number} */ range) {
    const level = threshold === null ? -1 : Math.fround(threshold);
    const classes = own.starts.length - 1;
    this.own = own;
    this.entry = entriesAbove(own, level);
    this.totals = wrongTotals(own, level, range);
    this.level = level;
    this.range = range;
    this.next = 0;
    this.objects = Uint32Array.from({ length: classes }, (_, c) => own.objects[c * RANGES + range]);
    this.numbers = perMeasure(() => new Float64Array(classes).fill(NaN));
    this.TP = new Uint32Array(classes);
    this.FP = new Uint32Array(classes);
    this.precision = new Float64Array(classes * OVERLAPS.length * RECALLS.length);
    for (let c = 0; c < classes; c++) this.measure(c);
  }

  /** Compute the metrics of a class from its outcomes, by descending score. */
  measure(/** @type {number} */ c) {
    const { own, entry, totals, level, range } = this;
    const { place, matched, ignored, values, cuts, confidences } = own;
    const overlaps = OVERLAPS.length,
      every = (1 << overlaps) - 1,
      grid = GRID.length;
    const begin = own.starts[c],
      after = own.starts[c + 1];
    const end = own.sorted ? firstNotAbove(confidences, level, begin, after) : after;
    let misplaced = 0,
      s = grid - 1;
    right.fill(0);
    astray.fill(0);
    let i = this.next;
    for (; i < place.length && place[i] < after; i++) {
      const at = place[i];
      if (at >= end || !(confidences[at] > level)) continue;
      // LRP's grid is processed from its highest score on; the counts of a score are complete at its cut.
      for (; s >= 0 && begin + cuts[c * grid + s] <= at; s--)
        keep(s, totals[begin + cuts[c * grid + s]] - totals[begin], misplaced);
      const cell = entry[i] * RANGES + range;
      const wrong = totals[at] - totals[begin];
      if (cell < 0) {
        if ((own.before[i] >> range) & 1) for (let k = 0; k < overlaps; k++) astray[k]++;
        continue;
      }
      const hit = matched[cell] & ~ignored[cell];
      let known = hit | (every & ~(matched[cell] | ignored[cell]));
      for (let k = 0; known; k++, known >>= 1) {
        if ((hit >> k) & 1) {
          const n = ++right[k];
          values[k][n - 1] = n / (wrong + astray[k] + n + EPSILON);
        } else astray[k] += known & 1;
      }
      if (hit & 1) misplaced += 1 - own.iou[cell];
    }
    this.next = i;
    for (; s >= 0; s--) keep(s, totals[Math.min(begin + cuts[c * grid + s], end)] - totals[begin], misplaced);
    this.TP[c] = right[0];
    this.FP[c] = totals[end] - totals[begin] + astray[0];
    const objects = this.objects[c];
    if (!objects) return;
    this.average(c, values, needed(objects));
    this.optimum(c, objects);
  }

  /** Store the interpolated precision at each recall, and its means. */
  average(/** @type {number} */ c, /** @type {Float64Array[]} */ values, /** @type {Int32Array} */ counts) {
    const recalls = RECALLS.length;
    let total = 0;
    for (let k = 0; k < OVERLAPS.length; k++) {
      const own = values[k],
        n = right[k],
        at = (c * OVERLAPS.length + k) * recalls;
      for (let i = n - 1; i > 0; i--) if (own[i] > own[i - 1]) own[i - 1] = own[i];
      let sum = 0;
      for (let r = 0; r < recalls && counts[r] < n; r++) sum += this.precision[at + r] = own[counts[r]];
      if (!AVERAGED.includes(k)) continue; // 0.5, for LRP only
      total += sum;
      if (OVERLAPS[k] === IOUS[50]) this.numbers.AP50[c] = sum / recalls;
      if (OVERLAPS[k] === IOUS[75]) this.numbers.AP75[c] = sum / recalls;
    }
    this.numbers.mAP[c] = total / (recalls * AVERAGED.length);
  }

  /** Store the lowest LRP on the grid of scores and its components; ties use the lowest score. */
  optimum(/** @type {number} */ c, /** @type {number} */ objects) {
    const slack = 1 - Number(OVERLAPS[0]);
    let at = 0,
      lowest = Infinity;
    for (let s = 0; s < tp.length; s++) {
      const fn = objects - tp[s];
      const lrp = (error[s] / slack + fp[s] + fn) / (tp[s] + fp[s] + fn);
      if (lrp < lowest) {
        lowest = lrp;
        at = s;
      }
    }
    const { moLRP, moLRP_loc, moLRP_fp, moLRP_fn } = this.numbers;
    moLRP[c] = lowest;
    moLRP_loc[c] = error[at] / tp[at];
    moLRP_fp[c] = fp[at] / (tp[at] + fp[at]);
    moLRP_fn[c] = (objects - tp[at]) / objects;
  }

  /** Return the metrics of a class, with precision and recall of all detections above the threshold. */
  ofClass(/** @type {number} */ c) {
    const all = shares(this.TP[c], this.FP[c], this.objects[c]);
    return { ...all, ...perMeasure((key) => this.numbers[key][c]) };
  }

  /** Return the means over classes with objects; precision and recall pool all classes. */
  total() {
    const sum = (/** @type {Uint32Array} */ values) => values.reduce((total, value) => total + value, 0);
    const all = shares(sum(this.TP), sum(this.FP), sum(this.objects));
    return { ...all, ...perMeasure((key) => mean(this.numbers[key])) };
  }

  /**
   * Return the precision at each recall for an IoU, of a class or the mean over classes with objects; or null.
   */
  curve(/** @type {string} */ overlap, /** @type {number | null} */ c = null) {
    const k = OVERLAPS.indexOf(overlap);
    const rows = c === null ? [...this.objects.keys()].filter((row) => this.objects[row]) : this.objects[c] ? [c] : [];
    if (!rows.length) return null;
    const at = (/** @type {number} */ row) => (row * OVERLAPS.length + k) * RECALLS.length;
    return RECALLS.map((_, r) => rows.reduce((sum, row) => sum + this.precision[at(row) + r], 0) / rows.length);
  }
}

const shares = (/** @type {number} */ tp, /** @type {number} */ fp, /** @type {number} */ objects) => ({
  precision: tp + fp ? tp / (tp + fp) : NaN,
  recall: objects ? tp / objects : NaN,
});

function mean(/** @type {Float64Array} */ values) {
  let sum = 0,
    n = 0;
  for (const value of values)
    if (!Number.isNaN(value)) {
      sum += value;
      n++;
    }
  return n ? sum / n : NaN;
}

/** Return the box metrics at the view's threshold for one size, by default all sizes; null if unknown. */
probox.View.prototype.boxes = function boxes(size = null) {
  const { result } = this;
  if (!result.boxes) return null;
  const range = size === null ? 0 : size + 1;
  this._boxes ||= [];
  const own = (result.unpacked ||= unpack(result, result.boxes));
  return (this._boxes[range] ||= new Boxes(own, this.threshold, range));
};
