// What the gallery shows: the chosen detector, order and filters.
"use strict";
(() => {
  const { probox } = window;
  const { h, byId } = probox;
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
    byId("detector").value = String(state.main);
    for (const key of /** @type {const} */ (["verdict", "quality", "duel", "tagged"])) byId(key).value = state[key];
    byId("sort").value = probox.sortOf(state);
    byId("by").value = probox.orderOf(state);
    probox.showControl("sort", state.show === "images");
    probox.showControl("by", state.show === "objects");
    for (const button of byId("show").querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button.value === state.show));
    nameBoth(store, state);
    byId("class").value = state.class === null ? "" : String(state.class);
    byId("size").value = state.size === null ? "" : String(state.size);
    if (document.activeElement !== byId("find")) byId("find").value = state.find;
    if (document.activeElement !== byId("from")) byId("from").value = String(100 * state.lo);
    if (document.activeElement !== byId("to")) byId("to").value = String(100 * state.hi);
    byId("clear").hidden = !probox.FILTERS.some((key) => state[key] !== probox.initial(key));
  });

  /** Return the detectors as choices of a list. */
  probox.detectorOptions = (store) => store.results.map((result, r) => h("option", { value: String(r) }, result.name));

  /** Choose a detector; nobody is their own rival. */
  probox.setMain = (main) =>
    probox.update({ main, rival: probox.state().rival === main ? null : probox.state().rival });

  /** Name both detectors where their difference is a choice; hide such choices without a second one. */
  function nameBoth(/** @type {Store} */ store, /** @type {State} */ state) {
    const rival = probox.rivalOf(state);
    byId("rival").value = rival === null ? "" : String(rival);
    for (const option of byId("rival").options) option.disabled = option.value === String(state.main);
    probox.showControl("duel", rival !== null);
    const [a, b] = [state.main, rival].map((r) => (r === null ? "" : store.results[r].name));
    for (const option of byId("duel").options) if (option.value) option.textContent = probox.DUELS[option.value](a, b);
    for (const option of [...byId("sort").options, ...byId("by").options]) {
      if (!option.dataset.ahead) continue;
      option.hidden = option.disabled = rival === null;
      option.textContent = option.dataset.ahead === "a" ? `${a} better than ${b}` : `${b} better than ${a}`;
    }
  }

  /** @param {Store} store */
  function fillChoices(store) {
    const offer = (/** @type {SelectId} */ id, /** @type {[value: string | number, text: string][]} */ choices) =>
      byId(id).append(...choices.map(([value, text]) => h("option", { value: String(value) }, text)));
    offer(
      "quality",
      QUALITIES.map((quality) => [quality, quality]),
    );
    offer(
      "size",
      SIZES.map((name, size) => [size, name]),
    );
    offer(
      "verdict",
      FILTERED.map((name) => [name, VERDICTS[VERDICT[name]]]),
    );
    offer(
      "duel",
      Object.keys(probox.DUELS).map((name) => [name, ""]),
    );
    for (const id of /** @type {const} */ (["detector", "rival"])) {
      byId(id).append(...probox.detectorOptions(store));
      probox.showControl(id, store.results.length > 1);
    }
    offer(
      "class",
      store
        .usedClasses()
        .sort((a, b) => store.classes[a].localeCompare(store.classes[b]))
        .map((number) => [number, store.classes[number]]),
    );
  }

  probox.onStart((store) => {
    fillChoices(store);
    /** @type {(id: SelectId, changes: (value: string) => Partial<State>) => void} */
    const choose = (id, changes) => {
      const list = byId(id);
      list.addEventListener("change", () => probox.update(changes(list.value)));
    };
    const orNull = (/** @type {string} */ text) => (text === "" ? null : Number(text));
    byId("detector").addEventListener("change", () => probox.setMain(Number(byId("detector").value)));
    choose("rival", (value) => ({ rival: orNull(value) }));
    choose("duel", (duel) => ({ duel }));
    choose("sort", (sort) => ({ sort }));
    choose("by", (by) => ({ by }));
    choose("tagged", (tagged) => ({ tagged }));
    for (const button of byId("show").querySelectorAll("button")) {
      button.addEventListener("click", () => probox.update({ show: button.value }, true));
    }
    // Lists have no other values than those that they were filled with.
    choose("verdict", (value) => ({ verdict: /** @type {State["verdict"]} */ (value) }));
    choose("quality", (value) => ({ quality: /** @type {Quality} */ (value) }));
    choose("class", (value) => ({ class: orNull(value) }));
    choose("size", (value) => ({ size: orNull(value) }));
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
})();
