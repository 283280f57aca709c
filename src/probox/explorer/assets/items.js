// Close-ups of single objects and false positives: crop, drawing and caption.
const { probox } = window;
const { h, percent, byId } = probox;

/**
 * Return the square [x, y, side] of an image to show around boxes [x0, y0, x1, y1] of pixels.
 *
 * The margin is a quarter of the boxes' longer side, at least 12 pixels. The square is at most as large as the image's
 * longer side, unless a box is larger, and is moved into the image as far as possible.
 */
probox.cropAround = (boxes, width, height) => {
  const low = [0, 1].map((axis) => Math.min(...boxes.map((box) => box[axis])));
  const high = [0, 1].map((axis) => Math.max(...boxes.map((box) => box[axis + 2] + 1)));
  const longer = Math.max(high[0] - low[0], high[1] - low[1]);
  const side = Math.max(longer, Math.min(longer + 2 * Math.max(0.25 * longer, 12), Math.max(width, height)));
  // The crop leaves the image only where a box does.
  const inside = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ size) => {
    const middle = (from + to) / 2 - side / 2;
    if (side >= size) return Math.min(Math.max((size - side) / 2, to - side), from);
    return Math.min(Math.max(middle, Math.min(0, from)), Math.max(size, to) - side);
  };
  return [inside(low[0], high[0], width), inside(low[1], high[1], height), side];
};

/** Return the code of an item for the selection in the large view. */
probox.pickOf = (store, r, { image, d, o }) =>
  d >= 0 ? `d${d - store.results[r].detections.offsets[image]}` : `o${o - store.objects.offsets[image]}`;

/** Return the caption of an item: class, score, quality or outcome, and the outcome of the second detector. */
probox.itemCaption = (store, state, { d, o }, rival) => {
  const view = store.view(state.main, state.t);
  const { detections, pairs } = view.result;
  const score = d < 0 ? "" : percent(detections.score[d], 0);
  const name = d < 0 ? store.nameOfClass(store.objects.class[o]) : view.nameOf(d);
  const verdict = o < 0 ? "false positive" : d < 0 ? "missed" : `pPDQ ${percent(pairs.pPDQ[view.pair[d]], 1)}`;
  const against =
    rival === null ? null : o < 0 ? "" : `${outcomeOf(store.view(rival, state.t), o)} by ${store.results[rival].name}`;
  return {
    label: [name, d < 0 ? "" : `score ${score}`, verdict, against].filter(Boolean).join(", "),
    lines: [
      h(
        "span",
        { class: "said", title: name },
        h("span", { class: "name" }, name),
        score ? h("span", { class: "score" }, score) : null,
      ),
      h("span", { class: `numbers ${probox.toneOf(view, d < 0 ? "o" : "d", d < 0 ? o : d)}` }, verdict),
      against === null ? null : h("span", { class: "against", title: against }, against),
    ],
  };
};

const outcomeOf = (/** @type {View} */ view, /** @type {number} */ o) =>
  view.objectVerdict[o] === TP
    ? `pPDQ ${percent(view.result.pairs.pPDQ[view.pair[view.objectDetection[o]]], 1)}`
    : "missed";

/** Paint the part of an image around an item: its object and detection, and other objects faintly. */
probox.paintCrop = (store, state, item, canvas, ratio) => {
  const { image: row, d, o } = item;
  const width = store.images.w[row],
    height = store.images.h[row];
  /** @type {HTMLImageElement | null} */
  let photo = null;
  /** @type {{ geometry: Geometry; crop: [x: number, y: number, side: number] } | null} */
  let scene = null;
  const paint = () => {
    if (!scene) return;
    const { geometry, crop } = scene;
    const zoom = canvas.width / crop[2];
    const view = store.view(state.main, state.t);
    const focus = { object: o, detection: d };
    const options = { zoom: zoom / ratio, layers: new Set("mbe"), focus, fine: false };
    probox.paintSmall(
      canvas,
      view,
      state.main,
      row,
      [zoom, -zoom * crop[0], -zoom * crop[1]],
      photo,
      geometry,
      options,
    );
  };
  const soon = () => probox.later(paint);
  // Delayed, so that crops scrolled past load nothing.
  setTimeout(() => {
    if (!canvas.isConnected) return;
    probox.withGeometry(store, row, (geometry) => {
      const own = geometry.results[state.main].filter((one) => one.row === d);
      const objects = geometry.objects.filter((one) => one.row === o);
      const boxOf = (/** @type {SceneObject} */ { x0, y0, x1, y1 }) => /** @type {Box} */ ([x0, y0, x1, y1]);
      const crop = probox.cropAround([...own.map((one) => one.box), ...objects.map(boxOf)], width, height);
      const near = geometry.objects.filter(
        (one) =>
          one.x0 < crop[0] + crop[2] && one.x1 >= crop[0] - 1 && one.y0 < crop[1] + crop[2] && one.y1 >= crop[1] - 1,
      );
      const results = geometry.results.map((_, r) => (r === state.main ? own : []));
      scene = { geometry: { ...geometry, heat: null, objects: near, results }, crop };
      soon();
      probox.withPhoto(store, row, true, (small) => {
        photo ||= small;
        soon();
        // Small crops need the large photo, because the small one has too few pixels.
        if (canvas.isConnected && small.naturalWidth < width && (crop[2] * small.naturalWidth) / width < canvas.width) {
          probox.withPhoto(store, row, false, (large) => {
            photo = large;
            soon();
          });
        }
      });
    });
  }, 60);
};

// The list of objects and detections of an image, and the description of one of them.

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

/** Return the selected object or detection of an image, or null; also null for a detector that is not shown. */
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
 * Return the description of an object or detection: outcome, heading, match, qualities.
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
  const scored = (/** @type {number} */ d) => `${view.nameOf(d)} ${percent(detections.score[d], 1)}`;
  const there = (/** @type {number} */ o) =>
    `${store.nameOfClass(store.objects.class[o])} ${o - store.objects.offsets[image] + 1}`;
  const tone = probox.toneOf(view, kind, item);
  return {
    verdict,
    tone,
    outcome: tone === "wrong-class" ? "wrong class (matched: TP)" : (VERDICTS[verdict] ?? "below the threshold"),
    heading: kind === "d" ? `detection: ${scored(item)}` : `object: ${there(item)}`,
    partner:
      kind === "d"
        ? object >= 0
          ? `matched with object ${there(object)}`
          : "unmatched"
        : found >= 0
          ? `matched with detection ${scored(found)}`
          : "unmatched",
    qualities: view.qualities(found),
  };
}

/** Return the elements of the card for a hovered or selected item. */
probox.cardOf = (store, image, found) => {
  const { tone, outcome, heading, partner, qualities } = describe(store, image, found);
  const several = probox.state().other !== null && probox.state().other !== probox.state().main;
  return [
    h("b", heading),
    several ? h("div", { class: "of" }, store.results[found.r].name) : null,
    h("div", { class: tone }, outcome),
    h("div", partner),
    qualities
      ? h(
          "dl",
          QUALITIES.map((quality) => [
            h("dt", quality),
            h("dd", { "data-quality": quality, style: `--share:${qualities[quality]}` }, percent(qualities[quality])),
          ]),
        )
      : null,
  ].filter((element) => element !== null);
};

/**
 * Return one detector's entries: matches, misses, false positives, each by descending confidence.
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
    .map((entry) => ({ entry, text: describe(store, image, entry) }))
    .filter(({ text }) => text.verdict !== DROPPED)
    .sort((a, b) => ORDER[a.text.verdict] - ORDER[b.text.verdict]);
}

/**
 * List objects and detections of the shown detectors, for keyboards and screen readers; `hover(entry or null)` is called
 * when the focus or the pointer moves.
 */
probox.listItems = (store, image, geometry, shown, hover) => {
  const items = byId("items"),
    held = probox.focusIn(items);
  const { pick } = probox.state();
  const button = (/** @type {ReturnType<typeof entriesOf>[number]} */ { entry, text }) => {
    const code = probox.codeOf(store, image, entry);
    return h(
      "button",
      {
        type: "button",
        class: `item ${text.tone}`,
        "aria-pressed": String(pick === code),
        "data-code": code,
        "data-of": entry.r,
        onclick: () => probox.update({ pick: probox.state().pick === code ? null : code }),
        onpointerenter: () => hover(entry),
        onpointerleave: () => hover(null),
        onfocus: () => hover(entry),
        onblur: () => hover(null),
      },
      h("span", text.heading.replace(/^(detection|object): /, "")),
      h("span", { class: "numbers" }, text.qualities ? `pPDQ ${percent(text.qualities.pPDQ, 1)}` : text.outcome),
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
      shown.length > 1 ? h("h3", { id, title: store.results[r].name }, probox.swatch(r), store.results[r].name) : null,
      entries.map(button),
      entries.length ? null : h("p", { class: "note" }, "no objects or detections"),
    );
  });
  items.replaceChildren(...groups);
  items.dataset.count = String(groups.length);
  // The new list keeps the focus on the same entry.
  if (held) {
    [...items.querySelectorAll("button")]
      .find((one) => one.dataset.code === held.dataset.code && one.dataset.of === held.dataset.of)
      ?.focus();
  }
  const chosen = probox.pickedIn(store, image);
  byId("picked").replaceChildren(...(chosen ? probox.cardOf(store, image, chosen) : []));
  byId("picked").hidden = !chosen;
};
