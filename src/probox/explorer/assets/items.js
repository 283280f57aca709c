// What is in an image, in words: the list of objects and detections of each detector shown, and what one of them is.
"use strict";
(() => {
  const { probox } = window;
  const { h, percent, byId } = probox;
  const { QUALITIES, VERDICTS } = probox.constants;
  const { TP, FP, FN, IGNORED, DROPPED } = probox.constants.VERDICT;
  /** @type {Record<number, number>} */
  const ORDER = { [TP]: 0, [FN]: 1, [FP]: 2, [IGNORED]: 3 };

  // "d3" is the third detection of the main detector, "d3.1" that of detector 1, "o2" the image's second object.
  probox.field("pick", null, "pick", (text) => (/^(d\d+(\.\d+)?|o\d+)$/.test(text) ? text : undefined));

  /** Return the code of an object or detection { kind, r, row } of an image. */
  probox.codeOf = (store, image, { kind, r, row }) => {
    if (kind === "o") return `o${row - store.objects.offsets[image]}`;
    const number = row - store.results[r].detections.offsets[image];
    return r === probox.state().main ? `d${number}` : `d${number}.${r}`;
  };

  /** Return what the state picks in an image; null if nothing, or if it is of a detector that is not shown. */
  probox.pickedIn = (store, image) => {
    const { pick, main, other } = probox.state();
    if (!pick || image < 0) return null;
    const [number, of] = pick.slice(1).split(".").map(Number);
    const r = of ?? main;
    if (r !== main && r !== other) return null;
    const offsets = pick[0] === "o" ? store.objects.offsets : store.results[r].detections.offsets;
    if (offsets[image] + number >= offsets[image + 1]) return null;
    return { kind: pick[0], r, row: offsets[image] + number };
  };

  /**
   * Return a description of an object or detection: heading, sentence, qualities.
   *
   * @param {Store} store
   * @param {number} image
   * @param {Entry} entry
   */
  function describe(store, image, { kind, r, row: item }) {
    const view = store.view(r, probox.state().t);
    const { detections } = view.result;
    const found = kind === "d" ? item : view.objectDetection[item];
    const object = kind === "d" ? view.partner(item) : item;
    const verdict = kind === "d" ? view.verdict[item] : view.objectVerdict[item];
    const said = (/** @type {number} */ d) => `${view.nameOf(d)} ${percent(detections.score[d], 1)}`;
    const there = (/** @type {number} */ o) =>
      `${store.nameOfClass(store.objects.class[o])} ${o - store.objects.offsets[image] + 1}`;
    const tone = probox.toneOf(view, kind, item);
    return {
      verdict,
      tone,
      outcome: tone === "wrong-class" ? "wrong class (matched: TP)" : (VERDICTS[verdict] ?? "below the threshold"),
      heading: kind === "d" ? `detection: ${said(item)}` : `object: ${there(item)}`,
      partner:
        kind === "d"
          ? object >= 0
            ? `matched with object ${there(object)}`
            : "matched with no object"
          : found >= 0
            ? `matched with detection ${said(found)}`
            : "matched with no detection",
      qualities: view.qualities(found),
    };
  }

  /** Return the elements that tell what is hovered or picked. */
  probox.cardOf = (store, image, found) => {
    const { tone, outcome, heading, partner, qualities } = describe(store, image, found);
    const several = probox.state().other !== null && probox.state().other !== probox.state().main;
    return [
      h("b", {}, heading),
      several ? h("div", { class: "of" }, store.results[found.r].name) : null,
      h("div", { class: tone }, outcome),
      h("div", {}, partner),
      qualities
        ? h(
            "dl",
            {},
            QUALITIES.map((quality) => [
              h("dt", {}, quality),
              h("dd", { "data-quality": quality, style: `--share:${qualities[quality]}` }, percent(qualities[quality])),
            ]),
          )
        : null,
    ].filter((element) => element !== null);
  };

  /**
   * Return one detector's entries: matches, misses, false positives, each the surest first.
   *
   * @param {Store} store
   * @param {number} image
   * @param {Geometry} geometry
   * @param {number} r
   */
  function entriesOf(store, image, geometry, r) {
    const view = store.view(r, probox.state().t);
    return [
      ...[...probox.keptDetections(geometry, view, r)].reverse().map((d) => ({ kind: "d", r, row: d.row })),
      ...geometry.objects.filter((o) => view.objectDetection[o.row] < 0).map((o) => ({ kind: "o", r, row: o.row })),
    ]
      .map((entry) => ({ entry, told: describe(store, image, entry) }))
      .filter(({ told }) => told.verdict !== DROPPED)
      .sort((a, b) => ORDER[a.told.verdict] - ORDER[b.told.verdict]);
  }

  /**
   * List objects and detections of the detectors shown, so that keys and screen readers reach what the pointer does;
   * `hover(entry or null)` is told what the focus or the pointer is at.
   */
  probox.listItems = (store, image, geometry, shown, hover) => {
    const items = byId("items"),
      held = probox.focusIn(items);
    const { pick } = probox.state();
    const button = (/** @type {ReturnType<typeof entriesOf>[number]} */ { entry, told }) => {
      const code = probox.codeOf(store, image, entry);
      return h(
        "button",
        {
          type: "button",
          class: `item ${told.tone}`,
          "aria-pressed": String(pick === code),
          "data-code": code,
          "data-of": entry.r,
          onclick: () => probox.update({ pick: probox.state().pick === code ? null : code }),
          onpointerenter: () => hover(entry),
          onpointerleave: () => hover(null),
          onfocus: () => hover(entry),
          onblur: () => hover(null),
        },
        h("span", {}, told.heading.replace(/^(detection|object): /, "")),
        h("span", { class: "numbers" }, told.qualities ? `pPDQ ${percent(told.qualities.pPDQ, 1)}` : told.outcome),
      );
    };
    const groups = [...new Set(shown)].map((r) => {
      const entries = entriesOf(store, image, geometry, r);
      const id = `items-${r}`;
      return h(
        "div",
        {
          class: "group",
          role: "group",
          "data-of": r,
          ...(shown.length > 1 ? { "aria-labelledby": id } : { "aria-label": "objects and detections" }),
        },
        shown.length > 1
          ? h(
              "h3",
              { id, title: store.results[r].name },
              h("i", { class: "swatch", style: `background:${probox.line(r)}` }),
              store.results[r].name,
            )
          : null,
        entries.map(button),
        entries.length ? null : h("p", { class: "note" }, "nothing here"),
      );
    });
    items.replaceChildren(...groups);
    items.dataset.count = String(groups.length);
    // A list that is made anew must not take the focus away.
    if (held) {
      [...items.querySelectorAll("button")]
        .find((one) => one.dataset.code === held.dataset.code && one.dataset.of === held.dataset.of)
        ?.focus();
    }
    const chosen = probox.pickedIn(store, image);
    byId("picked").replaceChildren(...(chosen ? probox.cardOf(store, image, chosen) : []));
    byId("picked").hidden = !chosen;
  };
})();
