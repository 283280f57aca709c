// How the qualities of true positives are distributed; a range that is drawn there is the gallery's filter.
"use strict";
(() => {
  const probox = (window.probox = window.probox || {});
  const { h, byId } = probox;
  const { QUALITIES, VERDICT } = probox.constants;
  const BINS = 25;

  probox.field("of", "pPDQ", "distribution", probox.oneOf(QUALITIES));

  /** Return the share of true positives, in per cent, in each of `bins` equal ranges of a quality; 1 is in the last. */
  probox.histogram = (view, quality, bins) => {
    const counts = new Array(bins).fill(0);
    let total = 0;
    const values = view.result.pairs[quality];
    for (let d = 0; d < view.verdict.length; d++) {
      if (view.verdict[d] !== VERDICT.TP) continue;
      counts[Math.min(bins - 1, Math.floor(values[view.pair[d]] * bins))]++;
      total++;
    }
    return counts.map((n) => (100 * n) / Math.max(total, 1));
  };

  /** Filter by a range of the quality that is shown; one that covers everything, or nothing, is no filter. */
  function brush(lo, hi) {
    const none = !(hi > lo) || (lo <= 0 && hi >= 1);
    const round = (value) => Math.round(1000 * Math.min(Math.max(value, 0), 1)) / 1000;
    probox.update(none ? { lo: 0, hi: 1 } : { quality: probox.state().of, lo: round(lo), hi: round(hi) });
  }

  function renderHistogram(store, state) {
    const filtered = state.quality === state.of && (state.lo > 0 || state.hi < 1);
    probox.lineChart(byId("chart-qualities"), { xRange: [0, 1], xLabel: `${state.of} quality`, yLabel: "true positives, %",
      label: `distribution of ${state.of} quality`, format: (value) => `${value.toFixed(1)} %`,
      brush: filtered ? [state.lo, state.hi] : null, onBrush: brush,
      series: store.results.map((result, r) => {
        const shares = probox.histogram(store.view(r, state.t), state.of, BINS);
        return { name: result.name, colour: probox.lineColour(r), step: true,
          x: [...shares.map((_, i) => i / BINS), 1], y: [...shares, shares[BINS - 1]] };
      }) });
    byId("of").value = state.of;
  }

  probox.follow(["t", "of", "quality", "lo", "hi"], renderHistogram, "frame");

  probox.onStart(() => {
    byId("of").append(...QUALITIES.map((quality) => h("option", { value: quality }, quality)));
    byId("of").addEventListener("change", (event) => probox.update({ of: event.target.value }));
  });
})();
