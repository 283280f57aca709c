// The gallery: images filtered and sorted; only those in sight exist as elements.
"use strict";
(() => {
  const probox = (window.probox = window.probox || {});
  const { h, percent, byId } = probox;
  const { TP, FP, FN } = probox.constants.VERDICT;

  const SORTS = {
    worst: (a, b) => defined(a.PDQ, b.PDQ) || a.PDQ - b.PDQ,
    best: (a, b) => defined(a.PDQ, b.PDQ) || b.PDQ - a.PDQ,
    missed: (a, b) => b.FN - a.FN,
    wrong: (a, b) => b.FP - a.FP,
    crowded: (a, b) => b.objects - a.objects,
    number: () => 0,
  };
  const defined = (p, q) => Number.isNaN(p) - Number.isNaN(q);

  /** Return which images have at least one object or detection that all filters let through, and how many such. */
  function matching(store, state) {
    const view = store.view(state.main, state.t);
    const { detections, pairs } = view.result;
    const counts = new Uint32Array(store.count);
    const plain = state.class === null && state.size === null && !state.verdict && state.lo <= 0 && state.hi >= 1;
    const passes = (number, size, verdict, value) =>
      (state.class === null || number === state.class) && (state.size === null || (size >> state.size) & 1)
      && (!state.verdict || verdict === state.verdict) && value >= state.lo && value <= state.hi;
    const nothing = state.quality === "pPDQ" ? 0 : state.lo <= 0 && state.hi >= 1 ? 0 : NaN;
    for (let image = 0; image < store.count; image++) {
      for (let d = detections.offsets[image]; d < detections.offsets[image + 1]; d++) {
        if (view.verdict[d] === TP) {
          const object = pairs.object[view.pair[d]];
          const value = pairs[state.quality][view.pair[d]];
          if (passes(store.objects.class[object], store.objects.size[object], "TP", value)) counts[image]++;
        } else if (view.verdict[d] === FP) {
          if (passes(detections.class[d], detections.size[d], "FP", nothing)) counts[image]++;
        }
      }
      for (let o = store.objects.offsets[image]; o < store.objects.offsets[image + 1]; o++) {
        if (view.objectVerdict[o] !== FN) continue;
        if (passes(store.objects.class[o], store.objects.size[o], "FN", nothing)) counts[image]++;
      }
    }
    const wanted = state.find.trim().toLowerCase();
    const rows = [];
    for (let image = 0; image < store.count; image++) {
      if (!plain && !counts[image]) continue;
      if (wanted && !`${store.images.id[image]} ${store.images.name[image]}`.toLowerCase().includes(wanted)) continue;
      rows.push(image);
    }
    return { rows, items: rows.reduce((sum, image) => sum + counts[image], 0) };
  }

  const GAP = 14, CAPTION = 46;
  let layout = null; // { rows, columns, tile, picture }
  const tiles = new Map(); // place in the list: element
  let active = 0;

  function renderGallery(store, state) {
    const { rows, items } = matching(store, state);
    const sums = store.view(state.main, state.t).perImage();
    rows.sort((a, b) => SORTS[state.sort](sums[a], sums[b]) || a - b);
    probox.order = rows;
    byId("found").textContent = `${probox.count(rows.length)} ${rows.length === 1 ? "image" : "images"} with `
      + `${probox.count(items)} ${items === 1 ? "match, miss or false positive" : "matches, misses and false positives"}`;
    active = 0;
    for (const tile of tiles.values()) tile.remove();
    tiles.clear();
    byId("nothing").hidden = rows.length > 0;
    measure(store, state, rows);
    place(store, state);
  }

  function measure(store, state, rows) {
    const grid = byId("grid");
    const width = grid.clientWidth;
    const columns = Math.max(1, Math.floor((width + GAP) / (width < 560 ? 160 : 232)));
    const tile = Math.floor((width - GAP * (columns - 1)) / columns);
    layout = { rows, columns, tile, step: Math.round(tile * 0.75) + CAPTION + GAP };
    grid.style.height = `${Math.max(0, Math.ceil(rows.length / columns) * layout.step - GAP)}px`;
  }

  /** Make the tiles in and around the window, remove the others. */
  function place(store, state) {
    if (!layout) return;
    const top = byId("grid").getBoundingClientRect().top;
    const { rows, columns, step } = layout;
    const first = Math.max(0, Math.floor((-top - step) / step)) * columns;
    const last = Math.min(rows.length, (Math.ceil((window.innerHeight - top + step) / step)) * columns);
    for (const [number, tile] of tiles) {
      if ((number < first || number >= last) && !tile.contains(document.activeElement)) {
        tile.remove();
        tiles.delete(number);
      }
    }
    for (let number = first; number < last; number++) {
      if (!tiles.has(number)) tiles.set(number, makeTile(store, state, number));
    }
  }

  function makeTile(store, state, number) {
    const { rows, columns, tile, step } = layout;
    const row = rows[number];
    const sum = store.view(state.main, state.t).perImage()[row];
    const name = store.images.name[row] || `image ${store.images.id[row]}`;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const height = Math.round(tile * 0.75);
    const canvas = h("canvas", { width: Math.round(tile * ratio), height: Math.round(height * ratio), "aria-hidden": "true" });
    const element = h("button", { type: "button", class: "tile", "data-number": number,
      tabindex: number === active ? "0" : "-1", "data-image": store.images.id[row],
      style: `width:${tile}px;left:${(number % columns) * (tile + GAP)}px;top:${Math.floor(number / columns) * step}px`,
      "aria-label": `${name}: PDQ ${percent(sum.PDQ, 1)}, ${sum.TP} true positives, ${sum.FP} false positives, ${sum.FN} missed`,
      onclick: () => probox.update({ image: store.images.id[row], pick: null }, true) },
    canvas,
    h("span", { class: "caption" }, h("span", { class: "name" }, name), h("span", { class: "numbers" },
      h("b", {}, percent(sum.PDQ, 1)), h("span", { class: "right" }, `${sum.TP} TP`), h("span", { class: "wrong" }, `${sum.FP} FP`),
      h("span", { class: "wrong" }, `${sum.FN} FN`))));
    byId("grid").append(element);
    paintTile(store, state, row, canvas, ratio);
    return element;
  }

  function paintTile(store, state, row, canvas, ratio) {
    const context = canvas.getContext("2d");
    const width = store.images.w[row], height = store.images.h[row];
    const zoom = Math.min(canvas.width / width, canvas.height / height);
    const left = (canvas.width - zoom * width) / 2, top = (canvas.height - zoom * height) / 2;
    let photo = null, geometry = null;
    const paint = () => {
      if (!canvas.isConnected) return;
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.clearRect(0, 0, canvas.width, canvas.height);
      context.setTransform(zoom, 0, 0, zoom, left, top);
      context.fillStyle = probox.css("--ground");
      context.fillRect(0, 0, width, height);
      if (photo) context.drawImage(photo, 0, 0, width, height);
      if (!geometry) return;
      context.save();
      context.beginPath();
      context.rect(0, 0, width, height);
      context.clip();
      probox.paintScene(context, geometry, store.view(state.main, state.t), state.main,
        { zoom: zoom / ratio, layers: new Set("mb"), focus: null, fine: true });
      context.restore();
    };
    const soon = () => probox.later(paint);
    probox.withPhoto(store, row, true, (image) => { photo = image; soon(); });
    // Chunks are loaded for tiles that stay: one that is scrolled past asks for nothing.
    setTimeout(() => {
      if (canvas.isConnected) probox.withGeometry(store, row, (found) => { geometry = found; soon(); });
    }, 60);
    soon();
  }

  /** Move the focus among tiles, making those that are out of sight. */
  function move(store, state, to) {
    const { rows, columns, step } = layout;
    const target = Math.min(Math.max(to, 0), rows.length - 1);
    if (target < 0) return;
    tiles.get(active)?.setAttribute("tabindex", "-1");
    active = target;
    const top = byId("grid").getBoundingClientRect().top + window.scrollY + Math.floor(target / columns) * step;
    const bar = byId("bar").offsetHeight + 12;
    if (top - bar < window.scrollY) window.scrollTo({ top: top - bar });
    else if (top + step > window.scrollY + window.innerHeight) window.scrollTo({ top: top + step - window.innerHeight });
    place(store, state);
    if (!tiles.has(target)) tiles.set(target, makeTile(store, state, target));
    tiles.get(target).setAttribute("tabindex", "0");
    tiles.get(target).focus({ preventScroll: true });
  }

  probox.follow(["t", "main", "sort", ...probox.FILTERS], renderGallery, "frame");

  // Scrolling, resizing and keys.
  probox.onStart((store) => {
    const current = probox.state;
    window.addEventListener("scroll", probox.eachFrame(() => place(store, current())), { passive: true });
    let width = 0;
    new ResizeObserver(() => {
      const now = byId("grid").clientWidth;
      if (now === width || !layout) return;
      width = now;
      renderGallery(store, current());
    }).observe(byId("grid"));
    byId("grid").addEventListener("keydown", (event) => {
      const page = layout.columns * Math.max(1, Math.floor(window.innerHeight / layout.step) - 1);
      const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: layout.columns, ArrowUp: -layout.columns,
        PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
      if (!(event.key in steps)) return;
      event.preventDefault();
      move(store, current(), active + steps[event.key]);
    });
    byId("grid").addEventListener("focusin", (event) => {
      const tile = event.target.closest(".tile");
      if (tile) active = Number(tile.dataset.number);
    });
  });

  /** Put the focus back on the tile of an image, if it is in the list. */
  probox.focusTile = (store, state, image) => {
    const number = (probox.order || []).findIndex((row) => store.images.id[row] === image);
    if (number >= 0) move(store, state, number);
  };
})();
