// What stands under every table, shown or exported: threshold, convention, how many images, which probox.
"use strict";
(() => {
  const { probox } = window;

  /** Return parts of one text for all results if it is the same, else with the names of those it is of. */
  function ofAll(/** @type {Store} */ store, /** @type {(result: Result, r: number) => string} */ textOf) {
    const names = new Map();
    store.results.forEach((result, r) => {
      const text = textOf(result, r);
      names.set(text, [...(names.get(text) || []), result.name]);
    });
    if (names.size === 1) return [...names.keys()][0];
    return [...names].map(([text, own]) => `${text} (${own.join(", ")})`).join(", ");
  }

  /** Return in words above which label probability detections count. */
  probox.thresholdText = (store, state) => {
    const text = ofAll(store, ({ convention }) => String(state.t ?? convention.label_threshold ?? "none"));
    return text === "none" ? "no label threshold" : `label threshold ${text}`;
  };

  /** Return in words what made the numbers of a table. */
  probox.caption = (store, state) =>
    [
      probox.thresholdText(store, state),
      `convention ${ofAll(store, (result) => result.words)}`,
      `${probox.count(store.count)} ${store.count === 1 ? "image" : "images"}`,
      `probox ${store.index.version}`,
    ].join("; ");
})();
