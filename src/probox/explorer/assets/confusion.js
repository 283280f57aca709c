// Which classes are taken for which, in counts: `probox.analysis.loss_breakdown` of the page. Nothing here draws.
const { probox } = window;
const { h, byId, count, percent } = probox;
const { TP, FP, FN } = probox.constants.VERDICT;

/**
 * Return counts by class of the truth and class that detections name: classes, then background, then, as a prediction
 * alone, no class of the truth. They add up to TP, FP and FN.
 */
probox.confusion = (store, view) => {
  const classes = store.classes.length;
  const counts = Array.from({ length: classes + 1 }, () => new Uint32Array(classes + 2));
  const { detections, pairs } = view.result;
  for (let d = 0; d < view.verdict.length; d++) {
    if (view.verdict[d] !== TP && view.verdict[d] !== FP) continue;
    const truth = view.verdict[d] === TP ? store.objects.class[pairs.object[view.pair[d]]] : classes;
    counts[truth][detections.class[d] < 0 ? classes + 1 : detections.class[d]]++;
  }
  view.objectVerdict.forEach((verdict, o) => {
    if (verdict === FN) counts[store.objects.class[o]][classes]++;
  });
  return counts;
};

/** @param {Uint32Array | number[]} values */
const total = (values) => Array.from(values).reduce((sum, value) => sum + value, 0);

/** Return the classes that are mixed up most, in their order; those of which there is nothing are left out. */
probox.mostConfused = (counts, most) => {
  const classes = counts.length - 1;
  const size = (/** @type {number} */ c) => total(counts[c]) + total(counts.map((row) => row[c]));
  const mixed = (/** @type {number} */ c) =>
    total(counts[c]) -
    counts[c][c] -
    counts[c][classes] +
    total(counts.map((row) => row[c])) -
    counts[c][c] -
    counts[classes][c];
  return Array.from({ length: classes }, (_, c) => ({ c, size: size(c), mixed: mixed(c) }))
    .filter((one) => one.size)
    .sort((a, b) => b.mixed - a.mixed || b.size - a.size || a.c - b.c)
    .slice(0, most)
    .map((one) => one.c)
    .sort((a, b) => a - b);
};

// Which classes are taken for which, by PDQ's own matches at the threshold, with background; a cell chooses its items.

const { BACKGROUND, UNNAMED, MOST } = probox.constants.CONFUSION;

// --- the state: what the matrix shows, and the cell that the gallery shows ---

// In the address a class is its number, "-" is background and "?" no class of the truth.
const label = (/** @type {Store} */ store) => (/** @type {string} */ text) =>
  text === "-"
    ? store.classes.length
    : text === "?"
      ? store.classes.length + 1
      : /^\d+$/.test(text) && Number(text) < store.classes.length
        ? Number(text)
        : -1;
const signs = (/** @type {Store} */ store, /** @type {number} */ n) =>
  n < store.classes.length ? String(n) : n === store.classes.length ? "-" : "?";
const nameOf = (/** @type {Store} */ store, /** @type {number} */ n) =>
  store.classes[n] ?? (n === store.classes.length ? BACKGROUND : UNNAMED);

probox.field("confused", null, "confused", (text, store) => {
  const [truth, named, more] = text.split(">").map(label(store));
  const background = store.classes.length;
  const sensible =
    more === undefined &&
    truth >= 0 &&
    truth <= background &&
    named >= 0 &&
    !(truth === background && named === background);
  return sensible ? text : undefined;
});
probox.field("matrix", "most", "matrix", probox.oneOf(["most", "all"]));
probox.field("shares", "no", "shares", probox.oneOf(["no", "yes"]));

/**
 * Return the cell that is chosen, as classes, or null.
 *
 * @type {(store: Store, state: State) => [truth: number, named: number] | null}
 */
const chosen = (store, { confused }) => {
  if (confused === null) return null;
  const [truth, named] = confused.split(">").map(label(store));
  return [truth, named];
};

/** Return what a cell stands for. */
function cellWords(/** @type {Store} */ store, /** @type {number} */ truth, /** @type {number} */ named) {
  const background = store.classes.length;
  if (truth === background) return `false positives named ${nameOf(store, named)}`;
  if (named === background) return `missed: ${nameOf(store, truth)}`;
  return truth === named
    ? `${nameOf(store, truth)} found as such`
    : `${nameOf(store, truth)} taken for ${nameOf(store, named)}`;
}

probox.addItemFilter({
  keys: ["confused"],
  make: (store, state, r, view) => {
    const cell = chosen(store, state);
    if (!cell) return null;
    const [truth, named] = cell,
      background = store.classes.length;
    const there = store.objects.class,
      own = view.result.detections.class;
    return (d, o) =>
      (o < 0 ? background : there[o]) === truth &&
      (d < 0 ? background : own[d] < 0 ? background + 1 : own[d]) === named;
  },
  words: (store, state) => {
    const cell = chosen(store, state);
    return cell ? cellWords(store, ...cell) : "";
  },
});

// --- the section ---

/** @type {Work} */
function render(store, state) {
  const classes = store.classes.length;
  const counts = probox.confusion(store, store.view(state.main, state.t));
  const there = probox.mostConfused(counts, classes);
  const rows = state.matrix === "all" ? there : probox.mostConfused(counts, MOST);
  const unnamed = counts.some((row) => row[classes + 1] > 0);
  const columns = [...rows, classes, ...(unnamed ? [classes + 1] : [])];
  const cell = (/** @type {number} */ truth, /** @type {number} */ named) => {
    const value = counts[truth][named],
      sum = total(counts[truth]);
    if (truth === classes && named === classes) return h("td", { class: "none" }, "–");
    const share = sum ? value / sum : 0;
    const words = cellWords(store, truth, named);
    const text = !value ? "" : state.shares === "yes" ? percent(share, 1) : count(value);
    const key = `${signs(store, truth)}>${signs(store, named)}`;
    const on = state.confused === key;
    // Never so dark that the number could not be read.
    const style = value
      ? `background:color-mix(in srgb, var(--accent) ${(4 + 51 * share).toFixed(1)}%, var(--panel))`
      : null;
    return h(
      "td",
      {
        style,
        class: [truth === named && "own", on && "on"].filter(Boolean).join(" ") || null,
        "data-value": state.shares === "yes" ? share : value,
        "data-cell": key,
      },
      value
        ? h(
            "button",
            {
              type: "button",
              "data-key": key,
              "aria-pressed": String(on),
              title: `${words}: ${count(value)}, ${percent(share, 1)} % of the row`,
              "aria-label": `${text}${state.shares === "yes" ? " %" : ""}, ${words}`,
              onclick: () => choose(on ? null : key),
            },
            text,
          )
        : h("span", { class: "offscreen" }, "0"),
    );
  };
  const detector = store.results[state.main].name;
  const words = `Rows: classes of objects. Columns: classes that detections of ${detector} name.`;
  const named = columns.map((c) => h("th", { scope: "col", title: nameOf(store, c) }, h("span", nameOf(store, c))));
  const lines = [...rows, classes].map((truth) => {
    const cells = columns.map((column) => cell(truth, column));
    return probox.row(nameOf(store, truth), { class: truth === classes ? "background" : null }, cells);
  });
  const table = byId("confusion-table");
  const caption = h("caption", { class: "offscreen" }, words);
  const focused = probox.fillTable(table, caption, probox.head(["truth \\ named", ...named]), h("tbody", lines));
  offer(table, focused ?? state.confused ?? active);
  probox.showControl("confusion-all", there.length > MOST);
  byId("confusion-note").textContent = noteOf(store, counts, rows, there);
}

// Of so many buttons one is reached by tab, the others by arrows.
/** @type {string | null} */
let active = null;
/** @type {Record<string, [down: number, right: number]>} */
const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };

const buttonsOf = (/** @type {HTMLTableElement} */ table) => [...table.querySelectorAll("button")];

function offer(/** @type {HTMLTableElement} */ table, /** @type {string | null | undefined} */ key) {
  const buttons = buttonsOf(table);
  const reached = buttons.find((button) => button.dataset.key === key) ?? buttons[0];
  for (const button of buttons) button.tabIndex = button === reached ? 0 : -1;
  active = reached?.dataset.key ?? null;
}

/**
 * Go to the next cell that way which has something in it.
 *
 * @param {HTMLTableElement} table
 * @param {HTMLTableCellElement} cell
 * @param {HTMLTableRowElement} line
 * @param {[down: number, right: number]} steps
 */
function move(table, cell, line, [down, right]) {
  let row = line.rowIndex + down,
    column = cell.cellIndex + right;
  for (; table.rows[row]?.cells[column]; row += down, column += right) {
    const button = table.rows[row].cells[column].querySelector("button");
    if (button) {
      button.focus();
      return;
    }
  }
}

/**
 * Return what the matrix shows and leaves out.
 *
 * @param {Store} store
 * @param {Uint32Array[]} counts
 * @param {number[]} rows
 * @param {number[]} there
 */
function noteOf(store, counts, rows, there) {
  const classes = store.classes.length;
  const mixed = total(counts.slice(0, classes).map((row, c) => total(row) - row[c] - row[classes]));
  const matched = total(counts.slice(0, classes).map((row) => total(row) - row[classes]));
  return [
    `${count(mixed)} of ${count(matched)} matched detections name another class than their object's.`,
    rows.length < there.length
      ? `The ${rows.length} of ${there.length} classes that are mixed up most; what a row lacks went to others.`
      : "",
    "PDQ matches no detection with an object whose class it gives no probability: these are a false positive and a miss.",
  ]
    .filter(Boolean)
    .join(" ");
}

/** Choose a cell, and go where its images are. */
function choose(/** @type {string | null} */ confused) {
  probox.update({ confused }, confused !== null);
  if (confused !== null) probox.jump("gallery");
}

probox.follow(["t", "main", "confused", "matrix", "shares"], render, "frame", "confusion-table");

probox.onStart((store) => {
  probox.detectorChoice("confusion-detector", "main");
  probox.toggle("confusion-all", "matrix", "all");
  probox.toggle("confusion-shares", "shares", "yes");
  const table = byId("confusion-table");
  table.addEventListener("focusin", (event) => {
    if (event.target instanceof HTMLElement) offer(table, event.target.dataset.key);
  });
  table.addEventListener("keydown", (event) => {
    if (!(event.key in STEPS)) return;
    event.preventDefault();
    const cell = event.target instanceof Element ? event.target.closest("td") : null;
    const line = cell?.closest("tr");
    if (cell && line) move(table, cell, line, STEPS[event.key]);
  });
  probox.exportable("confusion-table", {
    name: "confusion",
    more: (_, state) =>
      [
        store.results[state.main].name,
        state.shares === "yes" ? "shares of the rows" : "counts",
        "rows: truth, columns: class that detections name, by PDQ's matches",
      ].join("; "),
  });
});
