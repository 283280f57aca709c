// COCO's precision against recall at the threshold: the mean over classes, or that of the chosen class.
"use strict";
(() => {
  const { probox } = window;
  const { h, byId, percent } = probox;
  const { BOXES, IOUS } = probox.constants;

  probox.field("iou", "50", "iou", probox.oneOf(Object.keys(IOUS)));

  const mean = (/** @type {number[]} */ values) => values.reduce((sum, value) => sum + value, 0) / values.length;

  /** Return the results that were measured by it, with their curves; null where the class has no object. */
  probox.recallCurves = (store, state) =>
    store.results.flatMap((result, r) => {
      if (!result.measures.includes("map") || !result.boxes) return [];
      return [
        { r, name: result.name, curve: store.view(r, state.t).boxes()?.curve(IOUS[state.iou], state.class) ?? null },
      ];
    });

  /** @type {Work} */
  const render = (store, state) => {
    const curves = probox.recallCurves(store, state);
    const whose = state.class === null ? "mean over classes" : store.classes[state.class];
    byId("h-recall").textContent = state.class === null ? "Precision and recall" : `Precision and recall: ${whose}`;
    const known = curves.flatMap(({ r, name, curve }) => (curve ? [{ r, name, curve }] : []));
    byId("of-recall").textContent = known.length
      ? `AP ${known.map((one) => `${one.name} ${percent(mean(one.curve), 1)}`).join(" · ")}; ${probox.thresholdText(store, state)}; ` +
        (state.class === null
          ? "mean over the classes that have objects"
          : "of the class chosen in the table or the gallery")
      : curves.length
        ? `There is no object of ${whose}.`
        : "Not known at a threshold: too many confidences and scores disagree.";
    probox.lineChart(byId("chart-recall"), {
      xRange: [0, 1],
      yRange: [0, 1.02],
      xLabel: "recall",
      yLabel: "precision",
      label: `precision against recall, ${whose}`,
      height: 320,
      format: (value) => percent(value, 1),
      series: known.map((one) => ({
        colour: probox.lineColour(one.r),
        mark: one.r,
        name: `${one.name} (AP ${percent(mean(one.curve), 1)})`,
        x: BOXES.RECALLS,
        y: one.curve,
      })),
    });
    byId("iou").value = state.iou;
  };

  probox.follow(["t", "iou", "class"], render, "frame", "chart-recall");

  probox.onStart((store) => {
    byId("iou").append(...Object.entries(IOUS).map(([value, text]) => h("option", { value }, text)));
    byId("iou").addEventListener("change", () => probox.update({ iou: byId("iou").value }));
    const card = byId("chart-recall").closest(".card");
    if (card && !store.results.some((result) => result.measures.includes("map"))) card.toggleAttribute("hidden", true);
  });
})();
