// COCO's average precision and LRP at a label threshold, from what became of each box.
//
// The index tells the outcome of matching (see explorer/payload.py); what a threshold drops changes no other outcome, or
// the change is told as an event. So the numbers are those of measuring anew, at any threshold.
const { probox } = window;
const { RECALLS, OVERLAPS, GRID, RANGES } = probox.constants.BOXES;
const { IOUS } = probox.constants;
const EPSILON = Number.EPSILON; // COCO's, against 0 / 0

/**
 * Unpack one result's outcomes, once.
 *
 * @type {(result: Result, told: PackedBoxes) => UnpackedBoxes}
 */
function unpack(result, told) {
  const { order, starts, cuts, late, objects } = told;
  const own = probox.columns({ order, starts, cuts, late, objects });
  const first = outcomes(told),
    later = outcomes(told.events);
  const { confidence, size } = result.detections;
  const n = own.order.length;
  const sure = new Float32Array(n),
    wrong = new Uint8Array(n);
  let sorted = true; // whether what a threshold keeps of a class are always the first ones
  for (let c = 0; c + 1 < own.starts.length; c++) {
    for (let i = own.starts[c]; i < own.starts[c + 1]; i++) {
      const d = own.order[i];
      sure[i] = confidence[d];
      if (i > own.starts[c] && sure[i] > sure[i - 1]) sorted = false;
      // Without a match it is wrong among all sizes, unless it is of none, and among its own.
      wrong[i] = (size[d] ? 1 : 0) | (size[d] << 1);
    }
  }
  for (let i = 0; i < own.late.length; i++) wrong[own.late[i]] = 0;
  // Places with an outcome now or later; the entry of one without is -1, until an event gives it one.
  const place = joined(Uint32Array, first.place, later.place)
    .sort()
    .filter((at, i, all) => !i || at !== all[i - 1]);
  /** @type {Map<number, number>} */
  const index = new Map();
  place.forEach((at, i) => index.set(at, i));
  const indexOf = (/** @type {number} */ at) => /** @type {number} */ (index.get(at)); // all of them are there
  const entry = new Int32Array(place.length).fill(-1);
  first.place.forEach((at, e) => {
    entry[indexOf(at)] = e;
  });
  const events = {
    threshold: probox.column(told.events.threshold),
    place: later.place.map(indexOf),
    first: first.place.length,
  };
  const before = place.map((at) => wrong[at]);
  for (let i = 0; i < place.length; i++) wrong[place[i]] = 0; // they are counted by their outcomes
  const values = OVERLAPS.map(() => new Float64Array(place.length));
  return {
    ...own,
    sure,
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

/** Return the entries of the outcomes that hold above a level. */
function entriesAbove(/** @type {UnpackedBoxes} */ own, /** @type {number} */ level) {
  const { place, threshold, first } = own.events;
  if (!threshold.length || threshold[0] > level) return own.entry;
  const entry = new Int32Array(own.entry);
  for (let e = 0; e < threshold.length && threshold[e] <= level; e++) entry[place[e]] = first + e;
  return entry;
}

/**
 * Return how many of the first 0, 1 .. n are wrong without a match of their own, in one range of sizes.
 *
 * @param {UnpackedBoxes} own
 * @param {number} level
 * @param {number} range
 */
function wrongTotals({ sure, wrong, sorted, totals }, level, range) {
  if (sorted && totals[range]) return totals[range];
  const sums = new Uint32Array(sure.length + 1);
  let sum = 0;
  for (let i = 0; i < sure.length; i++) {
    // Where a class is sorted, what is dropped comes last, and is not asked for.
    if (sorted || sure[i] > level) sum += (wrong[i] >> range) & 1;
    sums[i + 1] = sum;
  }
  return (totals[range] = sums);
}

/** Return outcomes with an overlap in every cell: that of what is right at the first overlap, else NaN. */
function outcomes(/** @type {PackedOutcomes} */ told) {
  const [place, matched, ignored] = [
    probox.column(told.place),
    probox.column(told.matched),
    probox.column(told.ignored),
  ];
  const iou = probox.column(told.iou);
  const spread = new Float64Array(matched.length).fill(NaN);
  let next = 0;
  for (let cell = 0; cell < matched.length; cell++) if (matched[cell] & ~ignored[cell] & 1) spread[cell] = iou[next++];
  return { place, matched, ignored, iou: spread };
}

/**
 * Return the first place from `begin` on whose value is not above a level, values descending.
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

/** Return which true positive, from 0, reaches each recall with so many objects. */
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

// What the walk through a class counts: right ones and wrong ones that match elsewhere by overlap; on LRP's grid the
// right and wrong ones and what is missing in overlaps.
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
 * Return something for each measure.
 *
 * @template T
 * @param {(key: Measure) => T} make
 */
const perMeasure = (make) =>
  /** @type {Record<Measure, T>} */ (Object.fromEntries(MEASURES.map((key) => [key, make(key)])));

/** Box measures of one result at one threshold among the objects of one range of sizes, 0 being all. */
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

  /** Walk through the outcomes of a class from the highest score down. */
  measure(/** @type {number} */ c) {
    const { own, entry, totals, level, range } = this;
    const { place, matched, ignored, values, cuts, sure } = own;
    const overlaps = OVERLAPS.length,
      every = (1 << overlaps) - 1,
      grid = GRID.length;
    const begin = own.starts[c],
      after = own.starts[c + 1];
    const end = own.sorted ? firstNotAbove(sure, level, begin, after) : after;
    let misplaced = 0,
      s = grid - 1;
    right.fill(0);
    astray.fill(0);
    let i = this.next;
    for (; i < place.length && place[i] < after; i++) {
      const at = place[i];
      if (at >= end || !(sure[at] > level)) continue;
      // LRP's grid is passed from its highest score on: what a score keeps is known when the walk comes to its cut.
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

  /** Keep the highest precision at each recall or a higher one, and its means. */
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
      total += sum;
      if (OVERLAPS[k] === IOUS[50]) this.numbers.AP50[c] = sum / recalls;
      if (OVERLAPS[k] === IOUS[75]) this.numbers.AP75[c] = sum / recalls;
    }
    this.numbers.mAP[c] = total / (recalls * OVERLAPS.length);
  }

  /** Keep the lowest LRP on the grid of scores, the lowest score of equal ones, and its components. */
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

  /** Return the numbers of a class, and precision and recall of all that the threshold keeps. */
  ofClass(/** @type {number} */ c) {
    const all = shares(this.TP[c], this.FP[c], this.objects[c]);
    return { ...all, ...perMeasure((key) => this.numbers[key][c]) };
  }

  /** Return the means over classes that have objects; precision and recall are of all classes together. */
  total() {
    const sum = (/** @type {Uint32Array} */ values) => values.reduce((total, value) => total + value, 0);
    const all = shares(sum(this.TP), sum(this.FP), sum(this.objects));
    return { ...all, ...perMeasure((key) => mean(this.numbers[key])) };
  }

  /**
   * Return precision at each recall at an overlap, of a class or the mean over classes that have objects; or null.
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

/** Return box measures at the view's threshold, among objects of one of the sizes or, by default, all; null: unknown. */
probox.View.prototype.boxes = function boxes(size = null) {
  const { result } = this;
  if (!result.boxes) return null;
  const range = size === null ? 0 : size + 1;
  this._boxes ||= [];
  const own = (result.unpacked ||= unpack(result, result.boxes));
  return (this._boxes[range] ||= new Boxes(own, this.threshold, range));
};
