// How the qualities of true positives are distributed; a range that is drawn there is the gallery's filter.
"use strict";
(() => {
  const { probox } = window;
  const { h, byId } = probox;
  const { QUALITIES } = probox.constants;
  const BINS = 25;

  probox.field("of", "pPDQ", "distribution", probox.oneOf(QUALITIES));

  /** Let the gallery show true positives of a range of the quality that is drawn; no range, or all of it, is no filter. */
  function brush(/** @type {number | null} */ lo, /** @type {number | null} */ hi) {
    const none = lo === null || hi === null || (lo <= 0 && hi >= 1);
    probox.update(none ? { lo: 0, hi: 1, verdict: "" } : { quality: probox.state().of, lo, hi, verdict: "TP" });
  }

  /** @type {Work} */
  const renderHistogram = (store, state) => {
    const filtered = state.quality === state.of && (state.lo > 0 || state.hi < 1);
    probox.lineChart(byId("chart-qualities"), {
      xRange: [0, 1],
      xLabel: `${state.of} quality`,
      yLabel: "true positives, %",
      label: `distribution of ${state.of} quality`,
      format: (value) => `${value.toFixed(1)} %`,
      brush: filtered ? [state.lo, state.hi] : null,
      brushStep: 1 / BINS,
      onBrush: brush,
      series: store.results.map((result, r) => {
        const shares = probox.histogram(store.view(r, state.t), state.of, BINS);
        return {
          name: result.name,
          colour: probox.lineColour(r),
          mark: r,
          step: true,
          x: [...shares.map((_, i) => i / BINS), 1],
          y: [...shares, shares[BINS - 1]],
        };
      }),
    });
    byId("of").value = state.of;
    const share = (/** @type {number} */ value) => +(100 * value).toFixed(2);
    byId("brushed").replaceChildren(
      ...(filtered
        ? [
            `Gallery: ${state.of} ${share(state.lo)} to ${share(state.hi)} % `,
            h("button", { type: "button", onclick: () => probox.jump("gallery") }, "See"),
            " ",
            h("button", { type: "button", onclick: () => brush(null, null) }, "Clear"),
          ]
        : ["Drag over a range: the gallery shows its true positives."]),
    );
  };

  probox.follow(["t", "of", "quality", "lo", "hi"], renderHistogram, "frame", "chart-qualities");

  probox.onStart(() => {
    byId("chart-qualities").after(h("p", { class: "brushed", id: "brushed" }));
    byId("of").append(...QUALITIES.map((quality) => h("option", { value: quality }, quality)));
    byId("of").addEventListener("change", () => {
      const value = QUALITIES.find((quality) => quality === byId("of").value);
      if (value) probox.update({ of: value });
    });
  });
})();
