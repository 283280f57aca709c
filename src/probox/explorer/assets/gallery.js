// The gallery: images or single objects, filtered and sorted. Only visible tiles exist as elements.
const { probox } = window;
const { h, percent, byId } = probox;

const GAP = 14,
  LINE = 18,
  CAPTION = 28; // pixels: gap between tiles, line of a caption, first line with padding
const MOST = 5000; // objects in the grid: browsers limit the height of an element
// Layout and content, set by renderGallery before anything else uses them.
/** @type {{ count: number; columns: number; tile: number; picture: number; step: number }} */
let layout;
/** @type {Shown} */
let shown;
/** @type {Map<number, HTMLElement>} */
const tiles = new Map(); // by position in the list
let active = 0;

/**
 * Return the images with passing items whose names and tags pass the filters.
 *
 * @param {Store} store
 * @param {State} state
 * @param {ImageSums} sums
 * @param {boolean} all
 */
function chosenImages(store, state, sums, all) {
  const wanted = state.find.trim().toLowerCase();
  const tags = probox.taggedIds(state);
  const rows = [];
  for (let image = 0; image < store.count; image++) {
    const id = store.images.id[image];
    if (!all && !(sums.TP[image] + sums.FP[image] + sums.FN[image])) continue;
    if (state.tagged && tags.has(id) !== (state.tagged === "yes")) continue;
    if (wanted && !`${id} ${store.images.name[image]}`.toLowerCase().includes(wanted)) continue;
    rows.push(image);
  }
  return rows;
}

const plural = (/** @type {number} */ n, /** @type {string} */ one, /** @type {string} */ many) =>
  `${probox.count(n)} ${n === 1 ? one : many}`;

/** @type {Work} */
function renderGallery(store, state) {
  const before = shown;
  const passed = probox.passing(store, state, state.main);
  const sums = probox.imageSums(store, state, state.main, passed);
  const rival = probox.rivalOf(state);
  const rivals = rival === null ? null : probox.imageSums(store, state, rival, probox.passing(store, state, rival));
  const { rows, apart } = probox.sortImages(store, state, chosenImages(store, state, sums, passed.all), sums, rivals);
  shown = {
    t: state.t,
    images: rows,
    items: null,
    passed,
    sums,
    rival,
    rivals,
    words: probox.filterWords(store, state),
  };
  const total = rows.reduce((sum, image) => sum + sums.TP[image] + sums.FP[image] + sums.FN[image], 0);
  const images = plural(rows.length, "image", "images");
  const items =
    plural(total, "match, miss or false positive", "matches, misses and false positives") +
    (shown.words ? ` (${shown.words})` : "");
  byId("found").textContent =
    state.show === "objects"
      ? `${items} in ${images}.`
      : `${images} with ${items}${shown.words ? "; PDQ, counts and order refer to these only." : "."}`;
  if (state.show === "objects") listItems(store, state, rows);
  else probox.order = rows;
  noteMissing(store, state, apart);
  byId("limit").replaceChildren(...(shown.items ? [] : probox.limitNote(store.view(state.main, state.t))));
  byId("grid").setAttribute("aria-label", state.show);
  active = 0;
  for (const tile of tiles.values()) tile.remove();
  tiles.clear();
  byId("nothing").hidden = rows.length > 0;
  byId("tag-all").hidden = !rows.length;
  measure(state);
  place(store, state);
  // filters.js announces a new threshold.
  if (before && before.t === state.t) probox.announce(byId("found").textContent);
}

/** Set the items to show, and the order of images in the large view. */
function listItems(/** @type {Store} */ store, /** @type {State} */ state, /** @type {number[]} */ rows) {
  const { items, total } = probox.itemList(store, state, shown.passed, MOST, rows);
  shown.items = items;
  probox.order = [...new Set(items.map((item) => item.image))];
  if (total > items.length) byId("found").textContent += ` The first ${probox.count(items.length)} are shown.`;
}

/** Show how many images are missing from a detection file, with a button that sorts them last or not. */
function noteMissing(/** @type {Store} */ store, /** @type {State} */ state, /** @type {number} */ apart) {
  const names = [state.main, shown.rival]
    .filter((r) => r !== null)
    .map((r) => store.results[r].name)
    .join(" or ");
  const last = state.unseen === "last";
  byId("apart").textContent = apart
    ? `${plural(apart, "image", "images")} without detections of ${names}, probably missing from the file, ${apart === 1 ? "is" : "are"} sorted last.`
    : "";
  byId("unseen").hidden = last && !apart;
  byId("unseen").textContent = last ? "Sort with other images" : "Sort missing images last";
}

function measure(/** @type {State} */ state) {
  const grid = byId("grid");
  const width = grid.clientWidth;
  const crops = state.show === "objects";
  const least = crops ? (width < 560 ? 120 : 178) : width < 560 ? 160 : 232;
  const columns = Math.max(1, Math.floor((width + GAP) / least));
  const tile = Math.floor((width - GAP * (columns - 1)) / columns);
  const lines = crops
    ? 1 + Number(shown.rival !== null)
    : 1 + Number(shown.words !== "") + Number(shown.rival !== null);
  const picture = Math.round(tile * (crops ? 1 : 0.75)),
    caption = CAPTION + LINE * lines;
  const count = (shown.items ?? shown.images).length;
  layout = { count, columns, tile, picture, step: picture + caption + GAP };
  grid.style.height = `${Math.max(0, Math.ceil(count / columns) * layout.step - GAP)}px`;
}

/**
 * Make the tiles in and near the window, and remove the others.
 *
 * @type {Work}
 */
function place(store, state) {
  if (!layout) return;
  const top = byId("grid").getBoundingClientRect().top;
  const { count, columns, step } = layout;
  const first = Math.max(0, Math.floor((-top - step) / step)) * columns;
  const last = Math.min(count, Math.ceil((window.innerHeight - top + step) / step) * columns);
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

const imageAt = (/** @type {number} */ number) => (shown.items ? shown.items[number].image : shown.images[number]);

/** Return the state that opens an entry of the list; with a second detector, both are side by side. */
function opening(/** @type {Store} */ store, /** @type {State} */ state, /** @type {number} */ number) {
  const item = shown.items && shown.items[number];
  return {
    image: store.images.id[imageAt(number)],
    pick: item ? probox.pickOf(store, state.main, item) : null,
    other: shown.rival === null ? state.other : shown.rival,
  };
}

function makeTile(/** @type {Store} */ store, /** @type {State} */ state, /** @type {number} */ number) {
  const { columns, tile, picture, step } = layout;
  const row = imageAt(number),
    id = store.images.id[row];
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const canvas = h("canvas", {
    width: Math.round(tile * ratio),
    height: Math.round(picture * ratio),
    "aria-hidden": "true",
  });
  const name = store.images.name[row] || `image ${id}`;
  const { label, lines } = shown.items
    ? probox.itemCaption(store, state, shown.items[number], shown.rival)
    : imageCaption(store, row);
  const element = h(
    "div",
    {
      class: "cell",
      style: `width:${tile}px;left:${(number % columns) * (tile + GAP)}px;top:${Math.floor(number / columns) * step}px`,
    },
    h(
      "button",
      {
        type: "button",
        class: "tile",
        "data-number": number,
        tabindex: number === active ? "0" : "-1",
        "data-image": id,
        "aria-keyshortcuts": "t",
        "data-label": `${name}: ${label}`,
        title: shown.items ? name : `${name}: ${label}`,
        onclick: () => {
          active = number;
          probox.update(opening(store, state, number), true);
        },
      },
      canvas,
      h("span", { class: "caption" }, shown.items ? null : h("span", { class: "name" }, name), lines),
    ),
    h("button", { type: "button", class: "flag", tabindex: "-1", title: "tag (t)", onclick: () => toggle(id) }),
  );
  mark(element, id, state);
  byId("grid").append(element);
  if (shown.items) probox.paintCrop(store, state, shown.items[number], canvas, ratio);
  else paintTile(store, state, row, canvas, ratio);
  return element;
}

/** Show whether the image of a tile is tagged. */
function mark(/** @type {HTMLElement} */ element, /** @type {number} */ id, /** @type {State} */ state) {
  const tagged = probox.taggedIds(state).has(id);
  const [tile, flag] = element.querySelectorAll("button");
  const { label = "" } = tile.dataset;
  tile.setAttribute("aria-label", label + (tagged ? "; tagged" : ""));
  flag.setAttribute("aria-pressed", String(tagged));
  flag.setAttribute("aria-label", `tag ${label.split(":")[0]}`);
  flag.textContent = tagged ? "★" : "☆";
}

/** Return the caption of an image: active filters, numbers, and those of the second detector. */
function imageCaption(/** @type {Store} */ store, /** @type {number} */ row) {
  const { sums, rival, rivals, words } = shown;
  const PDQ = percent(sums.PDQ[row], 1);
  const against =
    rival === null || rivals === null
      ? null
      : `${probox.signed(sums.PDQ[row] - rivals.PDQ[row])} against ${percent(rivals.PDQ[row], 1)} of ${store.results[rival].name}`;
  const what = words ? `PDQ of ${words}` : "PDQ";
  const label =
    `${what} ${PDQ}, ${plural(sums.TP[row], "true positive", "true positives")}, ${plural(sums.FP[row], "false positive", "false positives")}, ` +
    `${sums.FN[row]} missed, loss ${sums.lost[row].toFixed(1)}${against ? `; difference ${against}` : ""}`;
  return {
    label,
    lines: [
      words ? h("span", { class: "of", title: what }, what) : null,
      h(
        "span",
        { class: "numbers" },
        h("b", PDQ),
        h("span", { class: "right" }, `${sums.TP[row]} TP`),
        h("span", { class: "wrong" }, `${sums.FP[row]} FP`),
        h("span", { class: "wrong" }, `${sums.FN[row]} FN`),
      ),
      against ? h("span", { class: "against", title: against }, against) : null,
    ],
  };
}

/** Return a difference in points with its sign. */
probox.signed = (value) => (Number.isFinite(value) ? `${value < 0 ? "−" : "+"}${percent(Math.abs(value), 1)}` : "–");

/**
 * Return an image's geometry with passing items only.
 *
 * @type {(geometry: Geometry, state: State) => Geometry}
 */
function visible(geometry, state) {
  const { passed } = shown;
  if (passed.all) return geometry;
  return {
    ...geometry,
    heat: null,
    objects: geometry.objects.filter((o) => passed.there[o.row]),
    results: geometry.results.map((rows, r) => (r === state.main ? rows.filter((d) => passed.found[d.row]) : rows)),
  };
}

/** @type {(store: Store, state: State, row: number, canvas: HTMLCanvasElement, ratio: number) => void} */
function paintTile(store, state, row, canvas, ratio) {
  const width = store.images.w[row],
    height = store.images.h[row];
  const zoom = Math.min(canvas.width / width, canvas.height / height);
  const left = (canvas.width - zoom * width) / 2,
    top = (canvas.height - zoom * height) / 2;
  /** @type {HTMLImageElement | null} */
  let photo = null;
  /** @type {Geometry | null} */
  let geometry = null;
  const paint = () => {
    const view = store.view(state.main, state.t);
    const options = { zoom: zoom / ratio, layers: new Set("mb"), focus: null, fine: true };
    const scene = geometry && visible(geometry, state);
    probox.paintSmall(canvas, view, state.main, row, [zoom, left, top], photo, scene, options);
  };
  const soon = () => probox.later(paint);
  probox.withPhoto(store, row, true, (image) => {
    photo = image;
    soon();
  });
  // Delayed, so that tiles scrolled past load nothing.
  setTimeout(() => {
    if (canvas.isConnected)
      probox.withGeometry(store, row, (found) => {
        geometry = found;
        soon();
      });
  }, 60);
  soon();
}

/** Move the focus to a tile, making it if it is outside of the window. */
function move(/** @type {Store} */ store, /** @type {State} */ state, /** @type {number} */ to) {
  const { count, columns, step } = layout;
  const target = Math.min(Math.max(to, 0), count - 1);
  if (target < 0) return;
  const focusOf = (/** @type {number} */ number) => tiles.get(number)?.querySelector("button");
  focusOf(active)?.setAttribute("tabindex", "-1");
  active = target;
  const top = byId("grid").getBoundingClientRect().top + window.scrollY + Math.floor(target / columns) * step;
  const bar = byId("bar").offsetHeight + 12;
  if (top - bar < window.scrollY) window.scrollTo({ top: top - bar });
  else if (top + step > window.scrollY + window.innerHeight) window.scrollTo({ top: top + step - window.innerHeight });
  place(store, state);
  if (!tiles.has(target)) tiles.set(target, makeTile(store, state, target));
  focusOf(target)?.setAttribute("tabindex", "0");
  focusOf(target)?.focus({ preventScroll: true });
}

/** Toggle the tag of an image; if it leaves the list, focus the tile that takes its position. */
function toggle(/** @type {number} */ id) {
  const inside = byId("grid").contains(document.activeElement),
    number = active;
  probox.toggleTag(id);
  if (inside && probox.state().tagged) move(probox.store, probox.state(), number);
}

probox.follow(probox.GALLERY, renderGallery);
probox.follow(
  ["t"],
  (store, state) => {
    if (shown.t !== state.t) renderGallery(store, state);
  },
  "frame",
  "grid",
);
probox.follow(["tags"], (store, state) => {
  if (state.tagged) renderGallery(store, state);
  else for (const [number, element] of tiles) mark(element, store.images.id[imageAt(number)], state);
});

// Scrolling, resizing and keys.
probox.onStart((store) => {
  const current = probox.state;
  window.addEventListener(
    "scroll",
    probox.eachFrame(() => place(store, current())),
    { passive: true },
  );
  let width = 0;
  new ResizeObserver(() => {
    const now = byId("grid").clientWidth;
    if (now === width || !layout) return;
    width = now;
    renderGallery(store, current());
  }).observe(byId("grid"));
  byId("tag-all").addEventListener("click", () =>
    probox.tagImages((shown.items ? probox.order : shown.images).map((row) => store.images.id[row])),
  );
  byId("unseen").addEventListener("click", () =>
    probox.update({ unseen: current().unseen === "last" ? "among" : "last" }, true),
  );
  byId("grid").addEventListener("keydown", (event) => {
    if (probox.isCommand(event)) return;
    if (event.key === "t") return toggle(store.images.id[imageAt(active)]);
    const page = layout.columns * Math.max(1, Math.floor(window.innerHeight / layout.step) - 1);
    /** @type {Record<string, number>} */
    const steps = {
      ArrowRight: 1,
      ArrowLeft: -1,
      ArrowDown: layout.columns,
      ArrowUp: -layout.columns,
      PageDown: page,
      PageUp: -page,
      Home: -Infinity,
      End: Infinity,
    };
    if (!(event.key in steps)) return;
    event.preventDefault();
    move(store, current(), active + steps[event.key]);
  });
  byId("grid").addEventListener("focusin", (event) => {
    const cell = event.target instanceof Element ? event.target.closest(".cell") : null;
    const tile = cell?.querySelector("button");
    if (tile) active = Number(tile.dataset.number);
  });
});

/** Return the row of an image id; -1 if it is unknown. */
const rowOf = (/** @type {Store} */ store, /** @type {number | null} */ image) =>
  (image === null ? undefined : store.rowOfImage.get(image)) ?? -1;

/** Focus the tile of an image if it is in the list; among several objects, the last opened one. */
probox.focusTile = (store, state, image) => {
  const row = rowOf(store, image);
  const number =
    layout && active < layout.count && imageAt(active) === row
      ? active
      : shown.items
        ? shown.items.findIndex((item) => item.image === row)
        : shown.images.indexOf(row);
  if (number >= 0) move(store, state, number);
};

/**
 * Return the image and selection `step` entries further in the list, or null at its end. The next object may be in the
 * same image.
 */
probox.neighbour = (step) => {
  const state = probox.state(),
    { store } = probox;
  const row = rowOf(store, state.image);
  const here = placeOf(store, state, row);
  const to = Math.min(Math.max(here < 0 ? 0 : here + step, 0), layout.count - 1);
  if (to < 0 || to === here) return null;
  active = to;
  const { image, pick } = opening(store, state, to);
  return { image, pick };
};

/** Return the position of the large view in the list as text. */
probox.placeInGallery = () => {
  const state = probox.state(),
    { store } = probox;
  const here = placeOf(store, state, rowOf(store, state.image));
  return here < 0 ? null : `${probox.count(here + 1)} of ${probox.count(layout.count)}`;
};

function placeOf(/** @type {Store} */ store, /** @type {State} */ state, /** @type {number} */ row) {
  const { items } = shown;
  if (!items) return shown.images.indexOf(row);
  const picked = (/** @type {Item} */ item) =>
    item.image === row && probox.pickOf(store, state.main, item) === state.pick;
  if (active < items.length && (picked(items[active]) || (state.pick === null && items[active].image === row)))
    return active;
  const exact = items.findIndex(picked);
  return exact >= 0 ? exact : items.findIndex((item) => item.image === row);
}
