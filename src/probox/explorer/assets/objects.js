// Single objects and false positives as crops of their images: where each lies, how it is painted, what is said of it.
"use strict";
(() => {
  const { probox } = window;
  const { h, percent } = probox;
  const { TP } = probox.constants.VERDICT;

  /**
   * Return the square [x, y, side] of an image to show around boxes [x0, y0, x1, y1] of pixels.
   *
   * A quarter of the boxes' longer side is added around them, and at least 12 pixels, but not beyond the image's longer
   * side unless a box does so. The square is moved into the image as far as it fits there.
   */
  probox.cropAround = (boxes, width, height) => {
    const low = [0, 1].map((axis) => Math.min(...boxes.map((box) => box[axis])));
    const high = [0, 1].map((axis) => Math.max(...boxes.map((box) => box[axis + 2] + 1)));
    const longer = Math.max(high[0] - low[0], high[1] - low[1]);
    const side = Math.max(longer, Math.min(longer + 2 * Math.max(0.25 * longer, 12), Math.max(width, height)));
    // An edge of the image is passed only by what does so itself.
    const inside = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ size) => {
      const middle = (from + to) / 2 - side / 2;
      if (side >= size) return Math.min(Math.max((size - side) / 2, to - side), from);
      return Math.min(Math.max(middle, Math.min(0, from)), Math.max(size, to) - side);
    };
    return [inside(low[0], high[0], width), inside(low[1], high[1], height), side];
  };

  /** Return the code by which the large view picks an item. */
  probox.pickOf = (store, r, { image, d, o }) =>
    d >= 0 ? `d${d - store.results[r].detections.offsets[image]}` : `o${o - store.objects.offsets[image]}`;

  /** Return the words of an item: its class, its score and quality or verdict, and what the second detector made of it. */
  probox.itemCaption = (store, state, { d, o }, rival) => {
    const view = store.view(state.main, state.t);
    const { detections, pairs } = view.result;
    const score = d < 0 ? "" : percent(detections.score[d], 0);
    const name = d < 0 ? store.nameOfClass(store.objects.class[o]) : view.nameOf(d);
    const verdict = o < 0 ? "false positive" : d < 0 ? "missed" : `pPDQ ${percent(pairs.pPDQ[view.pair[d]], 1)}`;
    const against =
      rival === null
        ? null
        : o < 0
          ? ""
          : `${againstWords(store.view(rival, state.t), o)} by ${store.results[rival].name}`;
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

  const againstWords = (/** @type {View} */ view, /** @type {number} */ o) =>
    view.objectVerdict[o] === TP
      ? `pPDQ ${percent(view.result.pairs.pPDQ[view.pair[view.objectDetection[o]]], 1)}`
      : "missed";

  /** Paint the part of an image around an item: its object and its detection, of the others only the objects, faintly. */
  probox.paintCrop = (store, state, item, canvas, ratio) => {
    const { image: row, d, o } = item;
    const context = probox.drawing(canvas);
    const width = store.images.w[row],
      height = store.images.h[row];
    /** @type {HTMLImageElement | null} */
    let photo = null;
    /** @type {{ geometry: Geometry; crop: [x: number, y: number, side: number] } | null} */
    let scene = null;
    const paint = () => {
      if (!canvas.isConnected) return;
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.clearRect(0, 0, canvas.width, canvas.height);
      if (!scene) return;
      const { geometry, crop } = scene;
      const zoom = canvas.width / crop[2];
      context.setTransform(zoom, 0, 0, zoom, -zoom * crop[0], -zoom * crop[1]);
      context.fillStyle = probox.css("--ground");
      context.fillRect(0, 0, width, height);
      if (photo) context.drawImage(photo, 0, 0, width, height);
      context.save();
      context.beginPath();
      context.rect(0, 0, width, height);
      context.clip();
      probox.paintScene(context, geometry, store.view(state.main, state.t), state.main, {
        zoom: zoom / ratio,
        layers: new Set("mbe"),
        focus: { object: o, detection: d },
        fine: false,
      });
      context.restore();
    };
    const soon = () => probox.later(paint);
    // Nothing is loaded for crops that are scrolled past.
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
          // A crop may be a few pixels of the small photo: then the large one is worth loading.
          if (
            canvas.isConnected &&
            small.naturalWidth < width &&
            (crop[2] * small.naturalWidth) / width < canvas.width
          ) {
            probox.withPhoto(store, row, false, (large) => {
              photo = large;
              soon();
            });
          }
        });
      });
    }, 60);
  };
})();
