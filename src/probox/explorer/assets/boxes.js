// COCO's average precision and LRP at a label threshold, from what became of each box.
//
// The index tells the outcome of matching (see explorer/boxes.py); what a threshold drops changes no other outcome, or
// the change is told as an event. So the numbers are those of measuring anew, at any threshold.
"use strict";
(() => {
  const probox = (window.probox = window.probox || {});
  const { RECALLS, OVERLAPS, GRID, RANGES } = probox.constants.BOXES;
  const { IOUS } = probox.constants;
  const EPSILON = Number.EPSILON; // COCO's, against 0 / 0

  /** Unpack one result's outcomes, once. */
  function unpack(store, result) {
    const told = result.boxes;
    const own = probox.columns({ order: told.order, starts: told.starts, cuts: told.cuts, late: told.late, objects: told.objects });
    const first = outcomes(told), later = outcomes(told.events);
    const { confidence, size } = result.detections;
    const n = own.order.length;
    const sure = new Float32Array(n), wrong = new Uint8Array(n), entry = new Int32Array(n).fill(-1);
    let sorted = true;
    for (let c = 0; c + 1 < own.starts.length; c++) {
      for (let i = own.starts[c]; i < own.starts[c + 1]; i++) {
        const d = own.order[i];
        sure[i] = confidence[d];
        if (i > own.starts[c] && sure[i] > sure[i - 1]) sorted = false;
        // Without a match it is wrong among all sizes, unless it is of none, and among its own.
        wrong[i] = (size[d] ? 1 : 0) | (size[d] << 1);
      }
    }
    for (const i of own.late) wrong[i] = 0;
    first.place.forEach((place, e) => { entry[place] = e; });
    const join = (name, Kind) => Kind.from([...first[name], ...later[name]]);
    return { ...own, sure, wrong, entry, sorted, matched: join("matched", Uint16Array), ignored: join("ignored", Uint16Array),
      iou: join("iou", Float64Array), events: { place: later.place, threshold: probox.column(told.events.threshold), first: first.place.length } };
  }

  /** Return outcomes with an overlap in every cell: that of what is right at the first overlap, else NaN. */
  function outcomes(told) {
    const { place, matched, ignored, iou } = probox.columns({ place: told.place, matched: told.matched, ignored: told.ignored, iou: told.iou });
    const spread = new Float64Array(matched.length).fill(NaN);
    let next = 0;
    for (let cell = 0; cell < matched.length; cell++) if (matched[cell] & ~ignored[cell] & 1) spread[cell] = iou[next++];
    return { place, matched, ignored, iou: spread };
  }

  /** Return how many true positives each recall needs, at least one, with so many objects. */
  function needed(objects) {
    const counts = new Int32Array(RECALLS.length);
    let k = 0;
    RECALLS.forEach((recall, r) => {
      while (k < objects && (k + 1) / objects < recall) k++;
      counts[r] = k; // from 0
    });
    return counts;
  }

  /** Box measures of one result at one threshold among the objects of one range of sizes, 0 being all. */
  class Boxes {
    constructor(store, result, threshold, range) {
      const own = (result.unpacked ||= unpack(store, result));
      const level = threshold === null ? -1 : Math.fround(threshold);
      let entry = own.entry;
      const { events } = own;
      if (events.threshold.length && events.threshold[0] <= level) {
        entry = Int32Array.from(entry);
        for (let e = 0; e < events.threshold.length && events.threshold[e] <= level; e++) entry[events.place[e]] = events.first + e;
      }
      const classes = own.starts.length - 1;
      const column = () => new Float64Array(classes).fill(NaN);
      Object.assign(this, { own, entry, level, range, classes,
        objects: Uint32Array.from({ length: classes }, (_, c) => own.objects[c * RANGES + range]),
        AP: column(), AP50: column(), AP75: column(), oLRP: column(), loc: column(), fp: column(), fn: column(),
        TP: new Uint32Array(classes), FP: new Uint32Array(classes), precision: new Float64Array(classes * OVERLAPS.length * RECALLS.length) });
      for (let c = 0; c < classes; c++) this.measure(c);
    }

    /** Walk through a class from the highest score down. */
    measure(c) {
      const { own, entry, level, range } = this;
      const begin = own.starts[c], end = own.starts[c + 1], objects = this.objects[c];
      const overlaps = OVERLAPS.length, grid = GRID.length, every = (1 << overlaps) - 1;
      const right = new Uint32Array(overlaps), astray = new Uint32Array(overlaps); // wrong ones that match elsewhere
      const best = Array.from({ length: overlaps }, () => []);
      let wrong = 0, misplaced = 0;
      // LRP's grid is passed from its highest score on; what a score keeps is known when the walk comes to its cut.
      const tp = new Uint32Array(grid), fp = new Uint32Array(grid), error = new Float64Array(grid);
      let s = grid - 1;
      const pass = (place) => {
        for (; s >= 0 && own.cuts[c * grid + s] <= place; s--) {
          tp[s] = right[0];
          fp[s] = wrong + astray[0];
          error[s] = misplaced;
        }
      };
      for (let i = begin; i < end; i++) {
        if (s >= 0 && own.cuts[c * grid + s] <= i - begin) pass(i - begin);
        if (!(own.sure[i] > level)) {
          if (own.sorted) break;
          continue;
        }
        const e = entry[i];
        if (e < 0) {
          wrong += (own.wrong[i] >> range) & 1;
          continue;
        }
        const cell = e * RANGES + range;
        const hit = own.matched[cell] & ~own.ignored[cell], miss = every & ~(own.matched[cell] | own.ignored[cell]);
        for (let k = 0; k < overlaps; k++) {
          if ((miss >> k) & 1) astray[k]++;
          else if ((hit >> k) & 1) {
            const n = ++right[k];
            best[k].push(n / (wrong + astray[k] + n + EPSILON));
          }
        }
        if (hit & 1) misplaced += 1 - own.iou[cell];
      }
      pass(Infinity);
      this.TP[c] = right[0];
      this.FP[c] = wrong + astray[0];
      if (!objects) return;
      this.average(c, best, needed(objects));
      this.optimum(c, objects, tp, fp, error);
    }

    /** Keep the highest precision at each recall or a higher one, and its means. */
    average(c, best, counts) {
      let total = 0;
      best.forEach((values, k) => {
        for (let i = values.length - 1; i > 0; i--) if (values[i] > values[i - 1]) values[i - 1] = values[i];
        const at = (c * OVERLAPS.length + k) * RECALLS.length;
        let sum = 0;
        for (let r = 0; r < RECALLS.length; r++) {
          const value = counts[r] < values.length ? values[counts[r]] : 0;
          this.precision[at + r] = value;
          sum += value;
        }
        total += sum;
        if (OVERLAPS[k] === IOUS[50]) this.AP50[c] = sum / RECALLS.length;
        if (OVERLAPS[k] === IOUS[75]) this.AP75[c] = sum / RECALLS.length;
      });
      this.AP[c] = total / (RECALLS.length * OVERLAPS.length);
    }

    /** Keep the lowest LRP on the grid of scores, the lowest score of equal ones, and its components. */
    optimum(c, objects, tp, fp, error) {
      const slack = 1 - Number(OVERLAPS[0]);
      let at = 0, lowest = Infinity;
      for (let s = 0; s < tp.length; s++) {
        const fn = objects - tp[s];
        const lrp = (error[s] / slack + fp[s] + fn) / (tp[s] + fp[s] + fn);
        if (lrp < lowest) { lowest = lrp; at = s; }
      }
      this.oLRP[c] = lowest;
      this.loc[c] = error[at] / tp[at];
      this.fp[c] = fp[at] / (tp[at] + fp[at]);
      this.fn[c] = (objects - tp[at]) / objects;
    }

    /** Return the numbers of a class by the keys of columns, and precision and recall of all that the threshold keeps. */
    ofClass(c) {
      return { ...shares(this.TP[c], this.FP[c], this.objects[c]), mAP: this.AP[c], AP50: this.AP50[c], AP75: this.AP75[c],
        moLRP: this.oLRP[c], moLRP_loc: this.loc[c], moLRP_fp: this.fp[c], moLRP_fn: this.fn[c] };
    }

    /** Return the means over classes that have objects; precision and recall are of all classes together. */
    total() {
      const sum = (values) => values.reduce((total, value) => total + value, 0);
      return { ...shares(sum(this.TP), sum(this.FP), sum(this.objects)), mAP: mean(this.AP), AP50: mean(this.AP50),
        AP75: mean(this.AP75), moLRP: mean(this.oLRP), moLRP_loc: mean(this.loc), moLRP_fp: mean(this.fp), moLRP_fn: mean(this.fn) };
    }

    /** Return precision at each recall at an overlap, of a class or the mean over classes that have objects; or null. */
    curve(overlap, c = null) {
      const k = OVERLAPS.indexOf(overlap);
      const rows = c === null ? [...this.objects.keys()].filter((row) => this.objects[row]) : this.objects[c] ? [c] : [];
      if (!rows.length) return null;
      const at = (row) => (row * OVERLAPS.length + k) * RECALLS.length;
      return RECALLS.map((_, r) => rows.reduce((sum, row) => sum + this.precision[at(row) + r], 0) / rows.length);
    }
  }

  const shares = (tp, fp, objects) => ({ precision: tp + fp ? tp / (tp + fp) : NaN, recall: objects ? tp / objects : NaN });

  function mean(values) {
    let sum = 0, n = 0;
    for (const value of values) if (!Number.isNaN(value)) { sum += value; n++; }
    return n ? sum / n : NaN;
  }

  /** Return box measures at the view's threshold, among objects of one of the sizes or, by default, all; null: unknown. */
  probox.View.prototype.boxes = function boxes(size = null) {
    if (!this.result.boxes) return null;
    const range = size === null ? 0 : size + 1;
    this._boxes ||= [];
    return (this._boxes[range] ||= new Boxes(this.store, this.result, this.threshold, range));
  };
})();
