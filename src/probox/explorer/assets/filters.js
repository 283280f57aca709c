// The bar at the top: the label threshold, with PDQ and counts.
const { probox } = window;
const { h, byId, percent } = probox;

probox.field("t", null, "t", (text, store) => probox.numberIn(store.index.lowest, 1)(text));

/** Set the threshold; the lowest value removes it. */
probox.setThreshold = (value) => probox.update({ t: value > probox.store.index.lowest ? value : null });

/** @type {number | null | undefined} */
let announced = null; // the last announced threshold; null before the first, undefined without a threshold

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
        probox.swatch(row.r),
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
        ? "no label threshold: all detections"
        : `label threshold ${state.t}: detections with a higher confidence`;
  if (announced !== null && announced !== state.t) {
    probox.announce(
      `label threshold ${state.t ?? "none"}: ${rows.map((row) => `${row.name} PDQ ${percent(row.PDQ)}`).join(", ")}`,
    );
  }
  announced = state.t ?? undefined;
});

probox.onStart((store) => {
  byId("threshold").addEventListener("input", () => probox.setThreshold(Number(byId("threshold").value)));
  byId("exact").addEventListener("input", () => {
    const value = Number(byId("exact").value);
    if (byId("exact").value === "") probox.update({ t: null });
    else if (value >= store.index.lowest && value <= 1) probox.update({ t: value });
  });
});

// Controls of the gallery: detectors, order and filters.

const { QUALITIES, SIZES, VERDICT, VERDICTS } = probox.constants;
/** @type {("TP" | "FP" | "FN")[]} */
const FILTERED = ["TP", "FP", "FN"];
const indexIn = (/** @type {string[]} */ names) => (/** @type {string} */ text) =>
  names.indexOf(text) < 0 ? undefined : names.indexOf(text);

probox.field("main", 0, "detector", (text, store) => probox.wholeIn(0, store.results.length - 1)(text));
probox.field("rival", null, "against", (text, store) => probox.wholeIn(0, store.results.length - 1)(text));
probox.field("show", "images", "show", probox.oneOf(["images", "objects"]));
probox.field("sort", "worst", "sort", probox.oneOf(probox.SORTS));
probox.field("by", "missed", "order", probox.oneOf(probox.ORDERS));
probox.field("unseen", "last", "unseen", probox.oneOf(["last", "among"]));
probox.field(
  "class",
  null,
  "class",
  (text, store) => indexIn(store.classes)(text),
  (value, store) => (value === null ? "" : store.classes[value]),
);
probox.field("size", null, "size", indexIn(SIZES), (value) => (value === null ? "" : SIZES[value]));
probox.field("verdict", "", "verdict", probox.oneOf(FILTERED));
probox.field("quality", "pPDQ", "quality", probox.oneOf(QUALITIES));
probox.field("lo", 0, "from", probox.numberIn(0, 1));
probox.field("hi", 1, "to", probox.numberIn(0, 1));
probox.field("duel", "", "duel", probox.oneOf(Object.keys(probox.DUELS)));
probox.field("find", "", "find", (text) => text);

probox.follow(probox.GALLERY, (store, state) => {
  probox.showControl("sort", state.show === "images");
  probox.showControl("by", state.show === "objects");
  for (const button of byId("show").querySelectorAll("button"))
    button.setAttribute("aria-pressed", String(button.value === state.show));
  nameBoth(store, state);
  if (document.activeElement !== byId("find")) byId("find").value = state.find;
  if (document.activeElement !== byId("from")) byId("from").value = String(100 * state.lo);
  if (document.activeElement !== byId("to")) byId("to").value = String(100 * state.hi);
  byId("clear").hidden = !probox.FILTERS.some((key) => state[key] !== probox.initial(key));
});

/** Return the state after selecting a main detector, which cannot be its own rival. */
const chooseMain = (/** @type {number} */ main) => ({
  main,
  rival: probox.state().rival === main ? null : probox.state().rival,
});

probox.detectorChoice = (id, key, change = undefined) =>
  probox.choice(
    id,
    key,
    probox.store.results.map(({ name }, r) => [r, name]),
    { change: change ?? (key === "main" ? chooseMain : undefined) },
  );

/** Put the names of both detectors into options about differences; hide these options without a second detector. */
function nameBoth(/** @type {Store} */ store, /** @type {State} */ state) {
  const rival = probox.rivalOf(state);
  for (const option of [...byId("rival").options, ...byId("versus-rival").options])
    option.disabled = option.value === String(state.main);
  probox.showControl("duel", rival !== null);
  const [a, b] = [state.main, rival].map((r) => (r === null ? "" : store.results[r].name));
  for (const option of byId("duel").options) if (option.value) option.textContent = probox.DUELS[option.value](a, b);
  for (const option of [...byId("sort").options, ...byId("by").options]) {
    if (!option.dataset.ahead) continue;
    option.hidden = option.disabled = rival === null;
    option.textContent = option.dataset.ahead === "a" ? `${a} better than ${b}` : `${b} better than ${a}`;
  }
}

probox.onStart((store) => {
  const classes = store.usedClasses().sort((a, b) => store.classes[a].localeCompare(store.classes[b]));
  /** @type {Record<"class" | "size" | "verdict" | "duel", Choice[]>} */
  const choices = {
    class: classes.map((number) => [number, store.classes[number]]),
    size: SIZES.map((name, size) => [size, name]),
    verdict: FILTERED.map((name) => [name, VERDICTS[VERDICT[name]]]),
    duel: Object.keys(probox.DUELS).map((name) => [name, ""]),
  };
  for (const id of /** @type {const} */ (["detector", "rival"])) {
    probox.detectorChoice(id, id === "rival" ? id : "main");
    probox.showControl(id, store.results.length > 1);
  }
  for (const id of /** @type {const} */ (["class", "size", "verdict", "duel"])) probox.choice(id, id, choices[id]);
  probox.choice("sort", "sort", [], { shown: probox.sortOf });
  probox.choice("by", "by", [], { shown: probox.orderOf });
  probox.choice("quality", "quality", QUALITIES);
  probox.choice("tagged", "tagged");
  for (const button of byId("show").querySelectorAll("button")) {
    button.addEventListener("click", () => probox.update({ show: button.value }, true));
  }
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("find").addEventListener("input", () => probox.update({ find: byId("find").value }));
  const share = (/** @type {string} */ text, /** @type {number} */ otherwise) =>
    text === "" || !(Number(text) >= 0 && Number(text) <= 100) ? otherwise : Number(text) / 100;
  byId("from").addEventListener("input", () => probox.update({ lo: share(byId("from").value, 0) }));
  byId("to").addEventListener("input", () => probox.update({ hi: share(byId("to").value, 1) }));
  byId("clear").addEventListener("click", () =>
    probox.update(Object.fromEntries(probox.FILTERS.map((key) => [key, probox.initial(key)]))),
  );
});
