// Which classes are taken for which, in counts: `probox.analysis.loss_breakdown` of the page. Nothing here draws.
"use strict";
(() => {
  const { probox } = window;
  const { TP, FP, FN } = probox.constants.VERDICT;

  /**
   * Return counts by class of the truth and class that detections name: classes, then background, then, as a prediction
   * alone, no class of the truth. They add up to TP, FP and FN.
   */
  probox.confusion = (store, view) => {
    const classes = store.classes.length;
    const counts = Array.from({ length: classes + 1 }, () => new Uint32Array(classes + 2));
    const { detections, pairs } = view.result;
    for (let d = 0; d < view.verdict.length; d++) {
      if (view.verdict[d] !== TP && view.verdict[d] !== FP) continue;
      const truth = view.verdict[d] === TP ? store.objects.class[pairs.object[view.pair[d]]] : classes;
      counts[truth][detections.class[d] < 0 ? classes + 1 : detections.class[d]]++;
    }
    view.objectVerdict.forEach((verdict, o) => {
      if (verdict === FN) counts[store.objects.class[o]][classes]++;
    });
    return counts;
  };

  /** @param {Uint32Array | number[]} values */
  const total = (values) => Array.from(values).reduce((sum, value) => sum + value, 0);

  /** Return the classes that are mixed up most, in their order; those of which there is nothing are left out. */
  probox.mostConfused = (counts, most) => {
    const classes = counts.length - 1;
    const size = (/** @type {number} */ c) => total(counts[c]) + total(counts.map((row) => row[c]));
    const mixed = (/** @type {number} */ c) =>
      total(counts[c]) -
      counts[c][c] -
      counts[c][classes] +
      total(counts.map((row) => row[c])) -
      counts[c][c] -
      counts[classes][c];
    return Array.from({ length: classes }, (_, c) => ({ c, size: size(c), mixed: mixed(c) }))
      .filter((one) => one.size)
      .sort((a, b) => b.mixed - a.mixed || b.size - a.size || a.c - b.c)
      .slice(0, most)
      .map((one) => one.c)
      .sort((a, b) => a - b);
  };
})();
