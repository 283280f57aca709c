// Counts of the confusion matrix, equal to `probox.analysis.loss_breakdown`.
const { probox } = window;
const { h, byId, count, percent } = probox;
const { TP, FP, FN } = probox.constants.VERDICT;

/**
 * Return counts by true class (rows) and predicted class (columns): classes, background, and for columns unknown
 * classes. They add up to TP, FP and FN.
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

/** Return the classes with the most confusions, in their order, without empty classes. */
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

// The section "Confusion matrix": PDQ's matches at the threshold, with background. A cell filters the gallery.

const { BACKGROUND, UNNAMED, MOST } = probox.constants.CONFUSION;

// --- the state: options of the matrix, and the selected cell ---

// In the address a class is its number, "-" is background and "?" an unknown class.
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
  const valid =
    more === undefined &&
    truth >= 0 &&
    truth <= background &&
    named >= 0 &&
    !(truth === background && named === background);
  return valid ? text : undefined;
});
probox.field("matrix", "most", "matrix", probox.oneOf(["most", "all"]));
probox.field("shares", "no", "shares", probox.oneOf(["no", "yes"]));

/**
 * Return the classes of the selected cell, or null.
 *
 * @type {(store: Store, state: State) => [truth: number, named: number] | null}
 */
const chosen = (store, { confused }) => {
  if (confused === null) return null;
  const [truth, named] = confused.split(">").map(label(store));
  return [truth, named];
};

/** Return the description of a cell. */
function cellWords(/** @type {Store} */ store, /** @type {number} */ truth, /** @type {number} */ named) {
  const background = store.classes.length;
  if (truth === background) return `false positives of class ${nameOf(store, named)}`;
  if (named === background) return `missed: ${nameOf(store, truth)}`;
  return truth === named
    ? `${nameOf(store, truth)} predicted correctly`
    : `${nameOf(store, truth)} predicted as ${nameOf(store, named)}`;
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
    // At most 55% of the accent colour, so that the number stays readable.
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
              title: `${words}: ${count(value)}, ${percent(share, 1)}% of the row`,
              "aria-label": `${text}${state.shares === "yes" ? "%" : ""}, ${words}`,
              onclick: () => choose(on ? null : key),
            },
            text,
          )
        : h("span", { class: "offscreen" }, "0"),
    );
  };
  const detector = store.results[state.main].name;
  const words = `Rows: class of the ground truth. Columns: class predicted by ${detector}.`;
  const named = columns.map((c) => h("th", { scope: "col", title: nameOf(store, c) }, h("span", nameOf(store, c))));
  const lines = [...rows, classes].map((truth) => {
    const cells = columns.map((column) => cell(truth, column));
    return probox.row(nameOf(store, truth), { class: truth === classes ? "background" : null }, cells);
  });
  const table = byId("confusion-table");
  const caption = h("caption", { class: "offscreen" }, words);
  const focused = probox.fillTable(table, caption, probox.head(["true \\ predicted", ...named]), h("tbody", lines));
  offer(table, focused ?? state.confused ?? active);
  probox.showControl("confusion-all", there.length > MOST);
  byId("confusion-note").textContent = noteOf(store, counts, rows, there);
}

// Tab reaches one button of the matrix, arrow keys the others.
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
 * Move the focus to the next non-empty cell in a direction.
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
 * Return the note below the matrix.
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
    `${count(mixed)} of ${count(matched)} matched detections have another class than their object.`,
    rows.length < there.length ? `Shown: the ${rows.length} of ${there.length} classes with the most confusions.` : "",
    "PDQ does not match a detection without probability for the object's class: they count as a false positive and a miss.",
  ]
    .filter(Boolean)
    .join(" ");
}

/** Select a cell and jump to the gallery. */
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
        state.shares === "yes" ? "fractions of the row" : "counts",
        "rows: true class, columns: predicted class, by PDQ's matches",
      ].join("; "),
  });
});
