// The large view of an image: layers, hovering, keys, two detectors side by side, zoom and pan.
const { probox } = window;
const { h, percent, byId } = probox;
const LAYERS = "pvmbeshl"; // photo, veil, masks, boxes, ellipses, samples, heatmap, labels
const VEIL = "rgba(255,255,255,0.3)";

const current = probox.state;
/** @type {Store} */
let store; // set at the start
/** @type {Pane[]} */
let panes = [];
/** @type {Geometry | null} */
let geometry = null;
/** @type {HTMLImageElement | null} */
let photo = null;
let row = -1;
const whole = { scale: 1, x: 0, y: 0 };
let zoom = whole; // relative to the fitted image, in CSS pixels from its top left
/** @type {Entry | null} */
let hover = null;
/** @type {ReturnType<Probox["sampler"]>} */
let sampler; // set at the start
const PAPER = 900; // width in CSS pixels for printing, so that labels are readable
let paper = false; // while printing
const pixelRatio = () => (paper ? 2 : window.devicePixelRatio || 1);

probox.field("image", null, "image", probox.wholeIn(-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER));
probox.field("other", null, "beside", (text, theStore) => probox.wholeIn(0, theStore.results.length - 1)(text));
probox.field("layers", "pmbel", "layers", (text) =>
  [...text].every((layer) => LAYERS.includes(layer)) ? text : undefined,
);

/**
 * Open, update or close the view according to the state.
 *
 * @type {Work}
 */
function renderViewer(theStore, state) {
  const dialog = byId("viewer");
  if (state.image === null) {
    if (dialog.open) dialog.close();
    row = -1;
    sampler.check();
    return;
  }
  const next = theStore.rowOfImage.get(state.image);
  if (next === undefined) {
    probox.say(`no image ${state.image} in this report`);
    probox.update({ image: null });
    return;
  }
  if (!dialog.open) dialog.showModal();
  if (next !== row) {
    row = next;
    geometry = photo = hover = null;
    byId("card").hidden = true;
    setZoom(whole);
    sampler.reset();
    const asked = row;
    probox.withGeometry(theStore, row, (found) => {
      if (asked !== row) return;
      geometry = found;
      fill();
      probox.announce(
        `${byId("title").textContent}, ${byId("place").textContent}: ${panes.map((pane) => `${store.results[pane.r].name} ${pane.text.textContent}`).join("; ")}`,
      );
    });
    probox.withPhoto(theStore, row, false, (image) => {
      if (asked === row) {
        photo = image;
        probox.repaint();
      }
    });
  }
  fill();
}

probox.follow(["image", "t", "main", "other", "layers", "pick", "all"], renderViewer);

const shownDetectors = () => {
  const { main, other } = current();
  return other === null ? [main] : [main, other];
};

/** Update heading, panes and lists. */
function fill() {
  const state = current();
  if (row < 0) return;
  byId("title").textContent = store.images.name[row] || `image ${store.images.id[row]}`;
  byId("place").textContent = probox.placeInGallery() ?? `image ${store.images.id[row]}`;
  const shown = shownDetectors();
  if (panes.map((pane) => pane.r).join() !== shown.join()) {
    panes = shown.map(makePane);
    byId("panes").replaceChildren(...panes.map((pane) => pane.box));
    byId("panes").dataset.count = String(panes.length);
  }
  for (const pane of panes) {
    pane.box.style.setProperty("--ratio", String(store.images.w[row] / store.images.h[row]));
    const sum = store.view(pane.r, state.t).perImage()[row];
    pane.text.textContent = `PDQ ${percent(sum.PDQ)}, ${sum.TP} TP, ${sum.FP} FP, ${sum.FN} FN`;
    pane.limit.replaceChildren(...probox.limitNote(store.view(pane.r, state.t), row));
    pane.scale.hidden = !state.layers.includes("h");
  }
  for (const input of byId("layers").querySelectorAll("input")) input.checked = state.layers.includes(input.value);
  if (geometry)
    probox.listItems(store, row, geometry, shown, (entry) => {
      hover = entry;
      probox.repaint();
    });
  sampler.check();
  arrange();
  probox.repaint();
}

/** Arrange two panes in columns or rows, whichever shows larger images. */
function arrange() {
  const place = byId("panes");
  if (row < 0 || !panes.length || !place.clientWidth) return;
  const width = store.images.w[row],
    height = store.images.h[row],
    caption = 40 + panes[0].limit.offsetHeight;
  const scale = (/** @type {number} */ w, /** @type {number} */ high) => Math.min(w / width, (high - caption) / height);
  const beside = scale(place.clientWidth / panes.length, place.clientHeight);
  const above = scale(place.clientWidth, place.clientHeight / panes.length);
  place.dataset.way = panes.length > 1 && above > 1.05 * beside ? "rows" : "columns";
}

function makePane(/** @type {number} */ r) {
  const { name } = store.results[r];
  const canvas = h("canvas", {
    tabindex: "-1",
    role: "img",
    "aria-label": `image with objects and detections of ${name}; the list contains the same as text`,
  });
  // Samples are animated and labels lie on top, so each has its own canvas.
  const [over, names] = [0, 1].map(() => h("canvas", { class: "over", "aria-hidden": "true" }));
  const text = h("span", {}),
    limit = h("p", { class: "limit" }),
    scale = probox.heatScale();
  const stage = h("div", { class: "stage" }, canvas, over, names);
  const box = h(
    "figure",
    { class: "pane" },
    h("figcaption", probox.swatch(r), h("b", { title: name }, name), text, scale),
    limit,
    stage,
  );
  /** @type {Pane} */
  const pane = { r, canvas, over, names, stage, box, text, limit, scale };
  probox.gestures(canvas, {
    zoom: () => zoom,
    setZoom,
    hover: (event) => setHover(event && hit(pane, event), event, pane),
    tap: (event) => {
      const found = hit(pane, event);
      if (event.pointerType === "touch") setHover(found, event, pane);
      const code = found && probox.codeOf(store, row, found);
      probox.update({ pick: code === current().pick ? null : code });
    },
    swipe: go,
  });
  return pane;
}

function setZoom(/** @type {Zoom} */ next) {
  zoom = next;
  // On phones, a finger scrolls the page, or pans a zoomed image.
  for (const { canvas } of panes) canvas.style.touchAction = zoom.scale > 1 ? "none" : "pan-y";
  probox.repaint();
}

/**
 * Return a pane's width and height in CSS pixels; when printing, with the aspect ratio of the image.
 *
 * @param {Pane} pane
 * @returns {Point}
 */
function sizeOf(pane) {
  if (paper) return [PAPER, Math.round((PAPER * store.images.h[row]) / store.images.w[row])];
  return [pane.stage.clientWidth, pane.stage.clientHeight];
}

/** Return the position of the image on a pane's canvas: CSS pixels per pixel, left, top. */
function fit(/** @type {Pane} */ pane) {
  const [across, down] = sizeOf(pane),
    { scale, x, y } = paper ? whole : zoom;
  const width = store.images.w[row],
    height = store.images.h[row];
  const base = Math.min(across / width, down / height);
  const left = (across - base * width) / 2;
  return { scale: base * scale, left: left * scale + x, top: y };
}

function repaintNow() {
  if (row < 0 || !byId("viewer").open) return;
  panes.forEach(paint);
  sampler.now();
}
probox.repaint = probox.eachFrame(repaintNow);

/** Paint the whole image for printing, at once, or for the screen again. */
probox.paintForPaper = (on) => {
  paper = on;
  if (on) repaintNow();
  else probox.repaint();
};

/** Resize a canvas to the stage and return a context scaled to pixels of the image. */
function contextOf(/** @type {Pane} */ pane, /** @type {HTMLCanvasElement} */ canvas) {
  const [width, height] = sizeOf(pane);
  const ratio = pixelRatio();
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = probox.drawing(canvas);
  const { scale, left, top } = fit(pane);
  context.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * left, ratio * top);
  return context;
}

function paint(/** @type {Pane} */ pane) {
  const state = current();
  const context = contextOf(pane, pane.canvas);
  const { scale, left, top } = fit(pane);
  const width = store.images.w[row],
    height = store.images.h[row];
  const layers = new Set(state.layers);
  context.fillStyle = probox.css("--ground");
  context.fillRect(0, 0, width, height);
  if (photo && layers.has("p")) context.drawImage(photo, 0, 0, width, height);
  if (photo && layers.has("p") && layers.has("v")) {
    // so that colours stand out
    context.fillStyle = VEIL;
    context.fillRect(0, 0, width, height);
  }
  const above = contextOf(pane, pane.names);
  pane.labels = [];
  const scene = geometry;
  if (!scene) return;
  const view = store.view(pane.r, state.t);
  const focus = focusOf(pane, view);
  probox.within(context, width, height, () =>
    probox.paintScene(context, scene, view, pane.r, { zoom: scale, layers, focus, fine: false, rings: [3, 2, 1] }),
  );
  if (layers.has("l")) {
    const ratio = pixelRatio();
    above.setTransform(ratio, 0, 0, ratio, 0, 0);
    pane.labels = probox.paintLabels(above, scene, view, pane.r, {
      toScreen: (x, y) => [x * scale + left, y * scale + top],
      toImage: (x, y) => [(x - left) / scale, (y - top) / scale],
      size: sizeOf(pane),
      focus,
    });
  }
}

const samplesWanted = () => row >= 0 && byId("viewer").open && current().layers.includes("s");

/** Paint the samples on their own canvas; the scene below stays unchanged. */
function paintSamples(/** @type {number} */ step, /** @type {boolean} */ still) {
  for (const pane of row >= 0 ? panes : []) {
    const context = contextOf(pane, pane.over); // resizing clears the canvas
    if (!geometry || !samplesWanted()) continue;
    const view = store.view(pane.r, current().t);
    const focus = focusOf(pane, view);
    const shown = probox
      .drawnDetections(geometry, view, pane.r, focus)
      .filter((d) => !focus || d.row === focus.detection);
    const first = store.results[pane.r].detections.offsets[row];
    probox.within(context, store.images.w[row], store.images.h[row], () =>
      probox.paintSamples(context, shown, {
        step,
        still,
        zoom: fit(pane).scale,
        colour: (d) => probox.outcomeColour(view, "d", d.row),
        seed: (d) => probox.sampleSeed(store.images.id[row], pane.r, d.row - first),
      }),
    );
  }
}

/**
 * Return the highlighted rows: the hovered or selected item, and its match.
 *
 * @type {(pane: Pane, view: View) => Focus}
 */
function focusOf(pane, view) {
  const chosen = hover || probox.pickedIn(store, row);
  if (!chosen) return null;
  if (chosen.kind === "o") return { object: chosen.row, detection: view.objectDetection[chosen.row] };
  if (chosen.r === pane.r) return { detection: chosen.row, object: view.partner(chosen.row) };
  // In the other pane: the detection of the same object, if there is one.
  const object = store.view(chosen.r, current().t).partner(chosen.row);
  return { object, detection: object < 0 ? -2 : view.objectDetection[object] };
}

/**
 * Return the smallest object or detection under the pointer.
 *
 * @type {(pane: Pane, event: PointerEvent) => Entry | null}
 */
function hit(pane, event) {
  if (!geometry) return null;
  const { scale, left, top } = fit(pane);
  const x = (event.offsetX - left) / scale,
    y = (event.offsetY - top) / scale;
  const state = current();
  const layers = new Set(state.layers);
  const view = store.view(pane.r, state.t);
  const slack = (event.pointerType === "touch" ? 10 : 4) / scale;
  /** @type {Entry | null} */
  let best = null;
  let least = Infinity;
  const offer = (/** @type {number} */ area, /** @type {Entry} */ found) => {
    if (area < least) {
      least = area;
      best = found;
    }
  };
  if (["b", "e", "h", "s"].some((layer) => layers.has(layer))) {
    for (const d of probox.drawnDetections(geometry, view, pane.r, null)) {
      const [x1, y1, x2, y2] = d.box;
      if (x >= x1 - slack && x <= x2 + 1 + slack && y >= y1 - slack && y <= y2 + 1 + slack) {
        offer((x2 - x1 + 1) * (y2 - y1 + 1), { kind: "d", r: pane.r, row: d.row });
      }
    }
  }
  if (layers.has("m")) {
    for (const o of geometry.objects) {
      if (x < o.x0 || x > o.x1 + 1 || y < o.y0 || y > o.y1 + 1 || !probox.contains(o, x, y)) continue;
      // Prefer the detection over its matched object, and other objects over detections.
      const area = (o.x1 - o.x0 + 1) * (o.y1 - o.y0 + 1) * (view.objectDetection[o.row] >= 0 ? 1.5 : 0.7);
      offer(area, { kind: "o", r: pane.r, row: o.row });
    }
  }
  return best;
}

const same = (/** @type {Entry | null} */ a, /** @type {Entry | null} */ b) =>
  a && b ? a.kind === b.kind && a.row === b.row && a.r === b.r : a === b;

/** @type {(found: Entry | null, event: PointerEvent | null, pane: Pane) => void} */
function setHover(found, event, pane) {
  const changed = !same(found, hover);
  hover = found;
  if (changed) probox.repaint();
  if (found && event) showCard(found, event, pane);
  else byId("card").hidden = true;
}

function showCard(/** @type {Entry} */ found, /** @type {PointerEvent} */ event, /** @type {Pane} */ pane) {
  const box = byId("card");
  box.replaceChildren(...probox.cardOf(store, row, found));
  box.hidden = false;
  const edge = byId("viewer").getBoundingClientRect();
  const from = pane.canvas.getBoundingClientRect();
  const x = from.left + event.offsetX,
    y = from.top + event.offsetY;
  const left = x + 18 + box.offsetWidth > edge.right ? x - 18 - box.offsetWidth : x + 18;
  box.style.left = `${Math.max(4, left)}px`;
  box.style.top = `${Math.max(4, Math.min(y + 12, edge.bottom - box.offsetHeight - 8))}px`;
}

/** Show the image some steps further in the order of the gallery. */
function go(/** @type {number} */ step) {
  const next = probox.neighbour(step);
  if (next) probox.update(next);
}

probox.onStart((theStore) => {
  store = theStore;
  sampler = probox.sampler(samplesWanted, paintSamples);
  const dialog = byId("viewer");
  const close = () => {
    const image = current().image;
    probox.update({ image: null, pick: null }, true);
    probox.focusTile(store, current(), image);
  };
  byId("close").addEventListener("click", close);
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    close();
  });
  byId("previous").addEventListener("click", () => go(-1));
  byId("next").addEventListener("click", () => go(1));
  byId("link").addEventListener("click", () => probox.copy(location.href, "link"));
  byId("viewer-keys").addEventListener("click", () => probox.showKeys());
  byId("layers").addEventListener("change", () => {
    const on = [...byId("layers").querySelectorAll("input")].filter((input) => input.checked);
    probox.update({ layers: on.map((input) => input.value).join("") });
  });
  probox.detectorChoice("shown", "main", (main) => ({ main, pick: null }));
  probox.detectorChoice("other", "other");
  for (const id of /** @type {const} */ (["shown", "other"])) probox.showControl(id, store.results.length > 1);
  const zoomAbout = (/** @type {number} */ factor) =>
    setZoom(probox.zoomed(zoom, factor, panes[0].canvas.clientWidth / 2, panes[0].canvas.clientHeight / 2));
  const pan = (/** @type {number} */ x, /** @type {number} */ y) => {
    if (zoom.scale > 1) setZoom({ ...zoom, x: zoom.x + x, y: zoom.y + y });
  };
  /** @type {Record<string, () => void>} */
  const keys = {
    ArrowRight: () => go(1),
    ArrowLeft: () => go(-1),
    n: () => go(1),
    p: () => go(-1),
    "+": () => zoomAbout(1.4),
    "-": () => zoomAbout(1 / 1.4),
    0: () => setZoom(whole),
    "Shift ArrowLeft": () => pan(80, 0),
    "Shift ArrowRight": () => pan(-80, 0),
    "Shift ArrowUp": () => pan(0, 80),
    "Shift ArrowDown": () => pan(0, -80),
    c: () => {
      if (store.results.length < 2) return;
      const { main, other } = current();
      probox.update({ other: other === null ? (main + 1) % store.results.length : null });
    },
  };
  for (const input of byId("layers").querySelectorAll("input")) {
    if (input.dataset.key) keys[input.dataset.key] = () => input.click();
  }
  dialog.addEventListener("keydown", (event) => {
    const writing = event.target instanceof Element && event.target.matches("select, input[type=text]");
    if (probox.isCommand(event) || writing) return;
    const work = keys[event.shiftKey && event.key.startsWith("Arrow") ? `Shift ${event.key}` : event.key];
    if (!work) return;
    event.preventDefault();
    work();
  });
  new ResizeObserver(() => {
    arrange();
    probox.repaint();
  }).observe(byId("panes"));
});

/** The panes with their canvases, for tests. */
probox.panes = () => panes;
