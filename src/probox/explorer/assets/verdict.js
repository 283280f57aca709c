// The verdict in words, on top: sentences of Python's diagnosis, which are of the threshold that was measured with.
"use strict";
(() => {
  const { probox } = window;
  const { h, byId } = probox;

  /** Return of which detections the sentences are. */
  function ofWhich(/** @type {Store} */ store) {
    const own = [...new Set(store.results.map(({ why }) => why.threshold))];
    if (own.length > 1) return "each of all its detections";
    return own[0] === null ? "of all detections" : `of all detections above ${own[0]}`;
  }

  probox.onStart((store) => {
    byId("verdicts").replaceChildren(
      ...store.results.map((result, r) =>
        h(
          "article",
          { class: "card", "data-result": r },
          h("h3", {}, probox.glyph(probox.line(r), r), result.name),
          h(
            "ul",
            {},
            result.why.verdict.map((text) => h("li", {}, text[0].toUpperCase() + text.slice(1))),
          ),
          result.why.notes.map((text) => h("p", { class: "note" }, `Note: ${text}.`)),
        ),
      ),
    );
    const left = [...new Set(store.results.flatMap(({ why }) => why.left_out))];
    byId("verdict-more").textContent = left.length
      ? `Not said here, since it takes longer: ${left.join(" and ")}. “probox diagnose RESULT” says it, with all numbers.`
      : "";
  });

  probox.follow(["t"], (store, state) => {
    const moved = state.t !== null;
    byId("verdict-of").textContent =
      ofWhich(store) + (moved ? `, not of the threshold ${state.t} that is set now` : "");
    byId("verdict-of").classList.toggle("moved", moved);
    byId("verdicts").classList.toggle("moved", moved);
  });
})();
