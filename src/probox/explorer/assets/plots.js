// The section of plots: what the threshold does, and the qualities of true positives.
"use strict";
(() => {
  const probox = (window.probox = window.probox || {});
  const { h, byId, percent } = probox;
  const { IOUS, QUALITIES, SIZES, VERDICT } = probox.constants;
  const { TP } = VERDICT;

  probox.field("of", "pPDQ", "distribution", probox.oneOf(QUALITIES));
  probox.field("iou", "50", "iou", probox.oneOf(Object.keys(IOUS)));

  const named = (r) => ({ name: probox.store.results[r].name, colour: probox.lineColour(r) });

  function renderCharts(store, state) {
    const results = store.results.map((_, r) => r);
    const pickThreshold = (x) => probox.setThreshold(Math.round(100 * x) / 100);
    probox.lineChart(byId("chart-pdq"), { xRange: [0, 1], xLabel: "label threshold", yLabel: "PDQ, %", marker: state.t ?? NaN,
      label: "PDQ against the label threshold", format: (value) => (Number.isFinite(value) ? value.toFixed(2) : "–"), onPick: pickThreshold,
      series: results.map((r) => ({ ...named(r), x: store.index.thresholds, y: store.results[r].curve.PDQ.map((v) => (v === null ? NaN : 100 * v)) })) });
    const styles = [["TP", ""], ["FP", "7 4"], ["FN", "2 4"]];
    probox.lineChart(byId("chart-counts"), { xRange: [0, 1], xLabel: "label threshold", yLabel: "count", marker: state.t ?? NaN,
      label: "true positives, false positives and missed objects against the label threshold", format: (value) => (Number.isFinite(value) ? probox.count(value) : "–"),
      onPick: pickThreshold, yScale: "log",
      series: results.flatMap((r) => styles.map(([key, dash]) => ({ ...named(r), name: `${store.results[r].name} ${key}`, dash,
        x: store.index.thresholds, y: store.results[r].curve[key] }))) });
    const bins = 25;
    probox.lineChart(byId("chart-qualities"), { xRange: [0, 1], xLabel: `${state.of} quality`, yLabel: "true positives, %",
      label: `distribution of ${state.of} quality`, format: (value) => `${value.toFixed(1)} %`,
      series: results.map((r) => ({ ...named(r), step: true, ...histogram(r, bins, state) })) });
    const cloud = (id, x, y, levels) => probox.cloudChart(byId(id), { xLabel: `${x} quality`, yLabel: `${y} quality`, height: 320,
      levels, label: `${y} against ${x} quality of every true positive`,
      series: results.map((r) => ({ ...named(r), r, ...points(r, x, y, state) })),
      onPick: (one, i) => probox.openDetection(one.r, one.rows[i]) });
    cloud("chart-spatial", "label", "spatial", true);
    cloud("chart-ground", "background", "foreground", false);
    probox.lineChart(byId("chart-recall"), { xRange: [0, 1], yRange: [0, 1.02], xLabel: "recall", yLabel: "precision",
      label: "precision against recall, mean over classes", height: 320, format: (value) => percent(value, 1),
      series: results.filter((r) => store.results[r].recall).map((r) => ({ ...named(r),
        name: `${store.results[r].name} (AP ${percent(mean(store.results[r].recall[state.iou]), 1)})`,
        x: store.results[r].recall[state.iou].map((_, i) => i / 100), y: store.results[r].recall[state.iou] })) });
    probox.barChart(byId("chart-sizes"), { groups: SIZES, label: "PDQ of small, medium and large objects", format: percent,
      series: results.map((r) => ({ ...named(r), values: store.view(r, state.t).perSize().map((row) => row.PDQ) })) });
    byId("legend").replaceChildren(...results.map((r) => h("span", {}, h("i", { class: "swatch",
      style: `background:${probox.line(r)}` }), store.results[r].name)));
    for (const [id, key] of [["of", "of"], ["iou", "iou"]]) byId(id).value = state[key];
  }

  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

  function histogram(r, bins, state) {
    const view = probox.store.view(r, state.t);
    const counts = new Array(bins).fill(0);
    let total = 0;
    for (let d = 0; d < view.verdict.length; d++) {
      if (view.verdict[d] !== TP) continue;
      counts[Math.min(bins - 1, Math.floor(view.result.pairs[state.of][view.pair[d]] * bins))]++;
      total++;
    }
    const shares = counts.map((n) => (100 * n) / Math.max(total, 1));
    return { x: [...shares.map((_, i) => i / bins), 1], y: [...shares, shares[bins - 1]] };
  }

  function points(r, x, y, state) {
    const view = probox.store.view(r, state.t);
    const found = { x: [], y: [], rows: [] };
    for (let d = 0; d < view.verdict.length; d++) {
      if (view.verdict[d] !== TP) continue;
      found.x.push(view.result.pairs[x][view.pair[d]]);
      found.y.push(view.result.pairs[y][view.pair[d]]);
      found.rows.push(d);
    }
    return found;
  }

  /** Open the image of a detection, with it picked. */
  probox.openDetection = (r, d) => {
    const { store } = probox;
    const { offsets } = store.results[r].detections;
    let row = 0;
    while (offsets[row + 1] <= d) row++;
    probox.update({ main: r, image: store.images.id[row], pick: `d${d - offsets[row]}` }, true);
  };

  probox.follow(["t", "of", "iou"], renderCharts, "frame");

  probox.onStart((store) => {
    byId("of").append(...QUALITIES.map((quality) => h("option", { value: quality }, quality)));
    byId("iou").append(...Object.entries(IOUS).map(([value, text]) => h("option", { value }, text)));
    byId("of").addEventListener("change", (event) => probox.update({ of: event.target.value }));
    byId("iou").addEventListener("change", (event) => probox.update({ iou: event.target.value }));
    if (!store.results.some((result) => result.recall)) byId("chart-recall").closest(".card").hidden = true;
  });
})();
