// The qualities of every true positive as clouds of points.
"use strict";
(() => {
  const { probox } = window;

  /** Return two qualities of a result's true positives, and their rows. */
  function points(/** @type {View} */ view, /** @type {Quality} */ x, /** @type {Quality} */ y) {
    const rows = view.right,
      { pairs } = view.result;
    const found = { x: new Float64Array(rows.length), y: new Float64Array(rows.length), rows };
    for (let i = 0; i < rows.length; i++) {
      const p = view.pair[rows[i]];
      found.x[i] = pairs[x][p];
      found.y[i] = pairs[y][p];
    }
    return found;
  }

  /** @type {(id: string, x: Quality, y: Quality, levels: boolean) => Work} */
  const cloud = (id, x, y, levels) => (store, state) =>
    probox.cloudChart(probox.byId(id), {
      xLabel: `${x} quality`,
      yLabel: `${y} quality`,
      height: 320,
      levels,
      label: `${y} against ${x} quality of every true positive`,
      series: store.results.map((result, r) => ({
        name: result.name,
        colour: probox.lineColour(r),
        r,
        ...points(store.view(r, state.t), x, y),
      })),
      onPick: (one, i) => probox.openDetection(one.r, one.rows[i]),
    });

  // So many points take long to draw: they come when the slider rests.
  probox.follow(["t"], cloud("chart-spatial", "label", "spatial", true), "rest");
  probox.follow(["t"], cloud("chart-ground", "background", "foreground", false), "rest");
})();
