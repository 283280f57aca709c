// What the gallery shows: the chosen detector, order and filters.
"use strict";
(() => {
  const { probox } = window;
  const { h, byId } = probox;
  const { QUALITIES, SIZES, VERDICT, VERDICTS } = probox.constants;
  const FILTERED = ["TP", "FP", "FN"];
  const indexIn = (names) => (text) => (names.indexOf(text) < 0 ? undefined : names.indexOf(text));

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
    (value, store) => store.classes[value],
  );
  probox.field("size", null, "size", indexIn(SIZES), (value) => SIZES[value]);
  probox.field("verdict", "", "verdict", probox.oneOf(FILTERED));
  probox.field("quality", "pPDQ", "quality", probox.oneOf(QUALITIES));
  probox.field("lo", 0, "from", probox.numberIn(0, 1));
  probox.field("hi", 1, "to", probox.numberIn(0, 1));
  probox.field("duel", "", "duel", probox.oneOf(Object.keys(probox.DUELS)));
  probox.field("find", "", "find", (text) => text);

  probox.follow(probox.GALLERY, (store, state) => {
    for (const [id, key] of [
      ["detector", "main"],
      ["verdict", "verdict"],
      ["quality", "quality"],
      ["duel", "duel"],
      ["tagged", "tagged"],
    ]) {
      byId(id).value = String(state[key]);
    }
    byId("sort").value = probox.sortOf(state);
    byId("by").value = probox.orderOf(state);
    byId("sort").closest("label").hidden = state.show !== "images";
    byId("by").closest("label").hidden = state.show !== "objects";
    for (const button of document.querySelectorAll("#show button"))
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
  function nameBoth(store, state) {
    const rival = probox.rivalOf(state);
    byId("rival").value = rival === null ? "" : String(rival);
    for (const option of byId("rival").options) option.disabled = option.value === String(state.main);
    byId("duel").closest("label").hidden = rival === null;
    const [a, b] = [state.main, rival].map((r) => (r === null ? "" : store.results[r].name));
    for (const option of byId("duel").options) if (option.value) option.textContent = probox.DUELS[option.value](a, b);
    for (const option of document.querySelectorAll("option[data-ahead]")) {
      option.hidden = option.disabled = rival === null;
      option.textContent = option.dataset.ahead === "a" ? `${a} better than ${b}` : `${b} better than ${a}`;
    }
  }

  function fillChoices(store) {
    const offer = (id, choices) =>
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
    for (const id of ["detector", "rival"]) {
      byId(id).append(...probox.detectorOptions(store));
      byId(id).closest("label").hidden = store.results.length < 2;
    }
    offer(
      "class",
      store
        .usedClasses()
        .map((number) => [number, store.classes[number]])
        .sort((a, b) => a[1].localeCompare(b[1])),
    );
  }

  probox.onStart((store) => {
    fillChoices(store);
    const on = (id, event, work) => byId(id).addEventListener(event, work);
    const choose = (id, key, convert = (text) => text) =>
      on(id, "change", (event) => probox.update({ [key]: convert(event.target.value) }));
    const orNull = (text) => (text === "" ? null : Number(text));
    on("detector", "change", (event) => probox.setMain(Number(event.target.value)));
    choose("rival", "rival", orNull);
    choose("duel", "duel");
    choose("sort", "sort");
    choose("by", "by");
    choose("tagged", "tagged");
    for (const button of document.querySelectorAll("#show button")) {
      button.addEventListener("click", () => probox.update({ show: button.value }, true));
    }
    choose("verdict", "verdict");
    choose("quality", "quality");
    choose("class", "class", orNull);
    choose("size", "size", orNull);
    on("filters", "submit", (event) => event.preventDefault());
    on("find", "input", (event) => probox.update({ find: event.target.value }));
    const share = (text, otherwise) =>
      text === "" || !(Number(text) >= 0 && Number(text) <= 100) ? otherwise : Number(text) / 100;
    on("from", "input", (event) => probox.update({ lo: share(event.target.value, 0) }));
    on("to", "input", (event) => probox.update({ hi: share(event.target.value, 1) }));
    on("clear", "click", () =>
      probox.update(Object.fromEntries(probox.FILTERS.map((key) => [key, probox.initial(key)]))),
    );
  });
})();
