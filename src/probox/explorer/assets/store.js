// The columns of all results, and every number that follows from them at a label threshold.
"use strict";
(() => {
  const probox = (window.probox = window.probox || {});

  const KINDS = { u8: Uint8Array, i16: Int16Array, u16: Uint16Array, i32: Int32Array, u32: Uint32Array,
    f32: Float32Array, f64: Float64Array };
  const { QUALITIES, SIZES } = probox.constants;
  const { IGNORED, TP, FP, FN, DROPPED } = probox.constants.VERDICT;

  /** Return the typed array that a column's [kind, base64] stands for. */
  function column([kind, text]) {
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    return new KINDS[kind](bytes.buffer);
  }

  function columns(table) {
    return Object.fromEntries(Object.entries(table).map(([name, packed]) => [name, column(packed)]));
  }

  class Store {
    constructor(index) {
      this.index = index;
      this.classes = index.classes;
      this.images = index.images;
      this.count = index.images.id.length;
      this.rowOfImage = new Map(index.images.id.map((id, row) => [id, row]));
      this.objects = columns(index.objects);
      this.results = index.results.map((result) => ({
        ...result,
        detections: columns(result.detections),
        pairs: columns(result.pairs),
        events: columns(result.events),
        small: column(result.small),
      }));
      this.cache = [];
    }

    /** Return result `r` as it is when only detections surer than `threshold` count; null: all of them. */
    view(r, threshold) {
      const cached = this.cache[r];
      if (cached && cached.threshold === threshold) return cached;
      return (this.cache[r] = new View(this, r, threshold));
    }
  }

  /** One result at one threshold: verdicts, partners, and sums by whatever one asks for. */
  class View {
    constructor(store, r, threshold) {
      const result = store.results[r];
      const { detections, pairs, events } = result;
      this.store = store;
      this.result = result;
      this.threshold = threshold;
      const n = detections.confidence.length;
      const pair = Int32Array.from(detections.pair);
      const level = threshold === null ? -1 : Math.fround(threshold);
      // Matches change where others drop out; the changes are stored, so nothing is matched here.
      for (let e = 0; e < events.threshold.length && events.threshold[e] <= level; e++) {
        pair[events.detection[e]] = events.pair[e];
      }
      const verdict = new Uint8Array(n);
      const objects = store.objects.class.length;
      const objectDetection = new Int32Array(objects).fill(-1);
      for (let d = 0; d < n; d++) {
        if (!(detections.confidence[d] > level)) {
          verdict[d] = DROPPED;
          pair[d] = -1;
        } else if (pair[d] < 0) {
          verdict[d] = FP;
        } else {
          const object = pairs.object[pair[d]];
          verdict[d] = result.small[object] ? IGNORED : TP;
          objectDetection[object] = d;
        }
      }
      const objectVerdict = new Uint8Array(objects);
      for (let o = 0; o < objects; o++) {
        objectVerdict[o] = result.small[o] ? IGNORED : objectDetection[o] >= 0 ? TP : FN;
      }
      Object.assign(this, { pair, verdict, objectDetection, objectVerdict });
    }

    /** Return sums in `groups` groups, by functions that give a detection's or an object's group, or -1. */
    sums(groups, ofDetection, ofObject) {
      const { detections, pairs } = this.result;
      const sums = Array.from({ length: groups }, () => ({ TP: 0, FP: 0, FN: 0, cost: 0, objects: 0,
        ...Object.fromEntries(QUALITIES.map((quality) => [quality, 0])) }));
      for (let d = 0; d < this.verdict.length; d++) {
        if (this.verdict[d] === TP) {
          const p = this.pair[d];
          const group = ofObject(pairs.object[p]);
          if (group < 0) continue;
          const sum = sums[group];
          sum.TP++;
          for (const quality of QUALITIES) sum[quality] += pairs[quality][p];
        } else if (this.verdict[d] === FP) {
          const group = ofDetection(d);
          if (group < 0) continue;
          sums[group].FP++;
          sums[group].cost += detections.cost ? detections.cost[d] : 1;
        }
      }
      for (let o = 0; o < this.objectVerdict.length; o++) {
        const group = ofObject(o);
        if (group < 0) continue;
        sums[group].objects++;
        if (this.objectVerdict[o] === FN) sums[group].FN++;
      }
      return sums.map(summary);
    }

    total() {
      return (this._total ||= this.sums(1, () => 0, () => 0)[0]);
    }

    perClass() {
      const own = this.result.detections.class, there = this.store.objects.class;
      return (this._perClass ||= this.sums(this.store.classes.length, (d) => own[d], (o) => there[o]));
    }

    perSize() {
      const own = this.result.detections.size, there = this.store.objects.size;
      const one = (size) => this.sums(1, (d) => inSize(own[d], size), (o) => inSize(there[o], size))[0];
      return (this._perSize ||= SIZES.map((_, size) => one(size)));
    }

    perImage() {
      const own = imageOfRows(this.result.detections.offsets), there = imageOfRows(this.store.objects.offsets);
      return (this._perImage ||= this.sums(this.store.count, (d) => own[d], (o) => there[o]));
    }

    /** Return a true positive's or object's five qualities by the detection, or null. */
    qualities(d) {
      const p = d < 0 ? -1 : this.pair[d];
      if (p < 0) return null;
      return Object.fromEntries(QUALITIES.map((name) => [name, this.result.pairs[name][p]]));
    }

    partner(d) {
      return this.pair[d] < 0 ? -1 : this.result.pairs.object[this.pair[d]];
    }
  }

  // Sizes are bits: COCO's ranges include both ends, so what lies on a limit is of two sizes.
  const inSize = (sizes, size) => ((sizes >> size) & 1 ? 0 : -1);

  function imageOfRows(offsets) {
    if (offsets.rows) return offsets.rows;
    const rows = new Uint32Array(offsets[offsets.length - 1]);
    for (let i = 0; i + 1 < offsets.length; i++) rows.fill(i, offsets[i], offsets[i + 1]);
    return (offsets.rows = rows);
  }

  /** Turn sums into averages over true positives, and PDQ; NaN where there is nothing to average. */
  function summary(sum) {
    const counted = sum.TP + sum.cost + sum.FN;
    const averages = Object.fromEntries(QUALITIES.map((name) => [name, sum.TP ? sum[name] / sum.TP : NaN]));
    return { ...averages, PDQ: counted ? sum.pPDQ / counted : NaN, TP: sum.TP, FP: sum.FP, FN: sum.FN,
      objects: sum.objects };
  }

  Object.assign(probox, { Store, View, column });
})();
