// The section of plots: what the threshold does, and the qualities of true positives.
"use strict";
(() => {
  const { probox } = window;
  const { h, byId, percent } = probox;
  const { SIZES } = probox.constants;

  const named = (/** @type {number} */ r) => ({
    name: probox.store.results[r].name,
    colour: probox.lineColour(r),
    mark: r,
  });

  /** @type {Work} */
  const renderCharts = (store, state) => {
    const results = store.results.map((_, r) => r);
    const pickThreshold = (/** @type {number} */ x) => probox.setThreshold(Math.round(100 * x) / 100);
    probox.lineChart(byId("chart-pdq"), {
      xRange: [0, 1],
      xLabel: "label threshold",
      yLabel: "PDQ, %",
      marker: state.t ?? NaN,
      label: "PDQ against the label threshold",
      format: (value) => (Number.isFinite(value) ? value.toFixed(2) : "–"),
      onPick: pickThreshold,
      series: results.map((r) => ({
        ...named(r),
        x: store.index.thresholds,
        y: store.results[r].curve.PDQ.map((v) => (v === null ? NaN : 100 * v)),
      })),
    });
    /** @type {["TP" | "FP" | "FN", string][]} */
    const styles = [
      ["TP", ""],
      ["FP", "7 4"],
      ["FN", "2 4"],
    ];
    probox.lineChart(byId("chart-counts"), {
      xRange: [0, 1],
      xLabel: "label threshold",
      yLabel: "count",
      marker: state.t ?? NaN,
      label: "true positives, false positives and missed objects against the label threshold",
      format: (value) => (Number.isFinite(value) ? probox.count(value) : "–"),
      onPick: pickThreshold,
      yScale: "log",
      series: results.flatMap((r) =>
        styles.map(([key, dash]) => ({
          ...named(r),
          name: `${store.results[r].name} ${key}`,
          dash,
          x: store.index.thresholds,
          y: store.results[r].curve[key],
        })),
      ),
    });
    probox.barChart(byId("chart-sizes"), {
      groups: SIZES,
      label: "PDQ of small, medium and large objects",
      format: (value) => percent(value),
      series: results.map((r) => ({
        ...named(r),
        values: store
          .view(r, state.t)
          .perSize()
          .map((row) => row.PDQ),
      })),
    });
    byId("legend").replaceChildren(
      ...results.map((r) => h("span", {}, probox.glyph(probox.line(r), r), store.results[r].name)),
    );
  };

  /** Open the image of a detection, with it picked. */
  probox.openDetection = (r, d) => {
    const { store } = probox;
    const { offsets } = store.results[r].detections;
    let row = 0;
    while (offsets[row + 1] <= d) row++;
    probox.update({ main: r, image: store.images.id[row], pick: `d${d - offsets[row]}` }, true);
  };

  probox.follow(["t"], renderCharts, "frame", "h-plots");
})();
