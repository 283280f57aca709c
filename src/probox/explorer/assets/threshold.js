// The bar at the top: the label threshold, and what PDQ and counts are at it.
"use strict";
(() => {
  const { probox } = window;
  const { h, byId, percent } = probox;

  probox.field("t", null, "t", (text, store) => probox.numberIn(store.index.lowest, 1)(text));

  /** Set the threshold; at the lowest there is none. */
  probox.setThreshold = (value) => probox.update({ t: value > probox.store.index.lowest ? value : null });

  /** @type {number | null | undefined} */
  let told = null; // the threshold that was told last; null: none yet

  probox.follow(["t"], (store, state) => {
    byId("threshold").min = byId("exact").min = String(store.index.lowest);
    byId("threshold").value = String(state.t ?? store.index.lowest);
    if (document.activeElement !== byId("exact")) byId("exact").value = state.t === null ? "" : String(state.t);
    byId("threshold").setAttribute("aria-valuetext", state.t === null ? "no threshold" : String(state.t));
    const rows = store.results.map((result, r) => ({ name: result.name, r, ...store.view(r, state.t).total() }));
    byId("readout").replaceChildren(
      ...rows.map((row) =>
        h(
          "span",
          { "data-result": row.r },
          h("i", { class: "swatch", style: `background:${probox.line(row.r)}` }),
          h("span", { class: "name", title: row.name }, probox.shortName(row.name)),
          h("b", { "data-value": "PDQ" }, percent(row.PDQ)),
          h(
            "span",
            { class: "counts" },
            `${probox.count(row.TP)} TP · ${probox.count(row.FP)} FP · ${probox.count(row.FN)} FN`,
          ),
        ),
      ),
    );
    for (const place of document.querySelectorAll(".printed"))
      place.textContent =
        state.t === null
          ? "no label threshold: all detections count"
          : `label threshold ${state.t}: only detections surer than that count`;
    if (told !== null && told !== state.t) {
      probox.announce(
        `label threshold ${state.t ?? "none"}: ${rows.map((row) => `${row.name} PDQ ${percent(row.PDQ)}`).join(", ")}`,
      );
    }
    told = state.t ?? undefined;
  });

  probox.onStart((store) => {
    byId("threshold").addEventListener("input", () => probox.setThreshold(Number(byId("threshold").value)));
    byId("exact").addEventListener("input", () => {
      const value = Number(byId("exact").value);
      if (byId("exact").value === "") probox.update({ t: null });
      else if (value >= store.index.lowest && value <= 1) probox.update({ t: value });
    });
  });
})();
