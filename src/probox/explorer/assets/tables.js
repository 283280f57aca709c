// Tables: the summary of all results, and classes and sizes, whose rows filter the gallery.
const { probox } = window;
const { h, percent, count } = probox;

// The index describes the columns: key, heading, hint, unit, direction ("high", "low" or null), whether the page shows
// 1 minus the number, and whether it follows the threshold.
/** @type {Record<Column["unit"], (value: number) => string>} */
const WRITTEN = {
  "per cent": percent,
  count: (value) => count(Math.round(value)),
  plain: (value) => value.toFixed(4),
};
const show = (/** @type {Column} */ column, /** @type {number} */ value) =>
  Number.isFinite(value) ? WRITTEN[column.unit](value) : "–";

/** Return the rows of the summary at a threshold; columns that cannot follow it are NaN. */
probox.summaryRows = (store, threshold) =>
  store.results.map((result, r) => {
    const view = store.view(r, threshold);
    /** @type {Record<string, number>} */
    const numbers = { ...view.total() };
    /** @type {Record<string, number> | null | undefined} */
    const boxes = threshold === null ? null : view.boxes()?.total();
    for (const { key, measure, complement } of store.index.columns) {
      if (!(key in result.whole)) continue;
      const asked = result.measures.includes(measure);
      const own = boxes && asked && key in boxes ? boxes[key] : NaN;
      numbers[key] = threshold === null ? (result.whole[key] ?? NaN) : complement ? 1 - own : own;
    }
    return { number: r, name: result.name, numbers: { ...numbers, number: r } };
  });

/** Return the columns of metrics that all results contain. */
function shownColumns(/** @type {Store} */ store) {
  return store.index.columns.filter((column) =>
    store.results.every((result) => !(column.key in result.whole) || result.whole[column.key] !== null),
  );
}

/** Return the tooltip of a column. */
probox.hintOf = ({ heading, hint, better, follows }) =>
  `${hint || heading}${follows ? "" : ", all detections"}` +
  (better ? `; ${better === "high" ? "higher" : "lower"} is better` : "");

/**
 * Return the best formatted value of each column, or null if all are equal. Detectors without detections are excluded.
 */
function bestOf(/** @type {Column[]} */ columns, /** @type {TableRow[]} */ rows) {
  return Object.fromEntries(
    columns.map((column) => {
      const competing = rows.filter(({ numbers }) => numbers.TP + numbers.FP > 0);
      const values = competing.map((row) => row.numbers[column.key]).filter(Number.isFinite);
      if (new Set(values.map((value) => show(column, value))).size < 2 || !column.better) return [column.key, null];
      return [column.key, show(column, column.better === "low" ? Math.min(...values) : Math.max(...values))];
    }),
  );
}

/**
 * @template {TableRow} T
 * @param {T[]} rows
 * @param {Sort} sort
 */
function sorted(rows, { key, down }) {
  return [...rows].sort((a, b) => {
    if (key === "name") return (down ? -1 : 1) * a.name.localeCompare(b.name);
    const [p, q] = [a.numbers[key], b.numbers[key]];
    if (!Number.isFinite(p) || !Number.isFinite(q)) return Number(Number.isFinite(q)) - Number(Number.isFinite(p));
    return down ? q - p : p - q;
  });
}

/**
 * Make a heading that sorts its table.
 *
 * @param {string} title
 * @param {string} key
 * @param {Sort} sort
 * @param {(next: Sort) => void} change
 * @param {string | null} [hint]
 * @param {boolean} [first]
 */
function sortable(title, key, sort, change, hint = null, first = true) {
  const active = sort.key === key;
  const button = h(
    "button",
    {
      type: "button",
      title: hint || null,
      "data-key": key,
      onclick: () => change({ key, down: active ? !sort.down : first }),
    },
    title,
  );
  return h("th", { scope: "col", "aria-sort": active ? (sort.down ? "descending" : "ascending") : "none" }, button);
}

/** Return the interval { low, high } of a result's number at a threshold, or null; versus.js replaces it. */
probox.intervalOf = () => null;

/** Return the description of the intervals for the caption; versus.js replaces it. */
probox.intervalWords = () => "";

/** Redraw the summary, for example after new intervals. */
probox.renderSummaryAgain = () => renderSummary(probox.store, probox.state());

/** @type {Sort} */
let order = { key: "number", down: false }; // input order

/**
 * Return the tooltip of a number that does not follow the threshold, or null.
 *
 * @param {Store} store
 * @param {Column} column
 * @param {SummaryRow} row
 * @param {number | null} threshold
 */
function missing(store, column, row, threshold) {
  const whole = store.results[row.number].whole[column.key];
  if (threshold === null || Number.isFinite(row.numbers[column.key]) || whole === undefined || whole === null)
    return null;
  return `not available at a threshold; all detections: ${show(column, whole)}`;
}

/** @type {Work} */
function renderSummary(store, state) {
  const rows = sorted(probox.summaryRows(store, state.t), order);
  const columns = shownColumns(store);
  const best = bestOf(columns, rows);
  const change = (/** @type {Sort} */ next) => {
    order = next;
    renderSummary(store, probox.state());
  };
  const head = [
    sortable("detector", "number", order, change, "input order", false),
    ...columns.map((column) => sortable(column.heading, column.key, order, change, probox.hintOf(column))),
  ];
  const body = rows.map((row) =>
    probox.row(
      [probox.swatch(row.number), row.name],
      { "data-result": row.number },
      columns.map((column) => {
        const value = row.numbers[column.key];
        const text = show(column, value);
        const interval = Number.isFinite(value) ? probox.intervalOf(row.number, column.key, state.t) : null;
        return probox.cell(
          value,
          {
            "data-column": column.key,
            "data-low": interval?.low,
            "data-high": interval?.high,
            class: best[column.key] === text ? "best" : null,
            title: missing(store, column, row, state.t),
          },
          text,
          interval && h("span", { class: "interval" }, `${show(column, interval.low)}–${show(column, interval.high)}`),
        );
      }),
    ),
  );
  probox.fillTable(probox.byId("summary"), probox.head(head), h("tbody", body));
}

/**
 * Further columns of the tables of classes and sizes: functions of ("classes" or "sizes", store, state) that return
 * { key, heading, hint, values, text(value, group) }, with one of `values` per group. `early` columns follow PDQ;
 * `ends(group)` returns an interval { low, high } or null for exports.
 */
probox.groupColumns = [];

/** @type {GroupTable[]} */
const TABLES = ["classes", "sizes"];

/** @type {Record<GroupTable, Sort>} */
const groupOrder = { classes: { key: "objects", down: true }, sizes: { key: "group", down: false } };

/** @type {Record<GroupTable, Grouping>} */
const GROUPS = {
  classes: {
    key: "class",
    heading: "class",
    sort: "name",
    names: (store) => store.classes,
    rows: (view) => view.perClass(),
    boxes: (view, group) => view.boxes()?.ofClass(group),
  },
  sizes: {
    key: "size",
    heading: "size",
    sort: "group",
    names: () => probox.constants.SIZES,
    rows: (view) => view.perSize(),
    boxes: (view, group) => view.boxes(group)?.total(),
  },
};

// COCO metrics of a class or size. Precision and recall refer to all detections above the threshold.
const AT = `IoU ${probox.constants.BOXES.OVERLAPS[0]}`;
/** @type {BoxColumn[]} */
const BOX_COLUMNS = [
  {
    key: "AP",
    heading: "AP",
    measure: "map",
    of: (own) => own.mAP,
    hint: {
      classes: `COCO's average precision, IoU ${probox.constants.BOXES.AVERAGED_WORDS}`,
      sizes: `COCO's average precision of objects of the size, IoU ${probox.constants.BOXES.AVERAGED_WORDS}, mean over classes`,
    },
  },
  {
    key: "LRP",
    heading: "1-LRP",
    measure: "lrp",
    of: (own) => 1 - own.moLRP,
    hint: {
      classes: "1 minus the optimal localization-recall-precision error; higher is better",
      sizes:
        "1 minus the optimal localization-recall-precision error of objects of the size, mean over classes; higher is better",
    },
  },
  {
    key: "precision",
    heading: "Prec",
    measure: "map",
    of: (own) => own.precision,
    hint: `fraction of detections above the threshold that are true positives, by COCO's matching at ${AT}`,
  },
  {
    key: "recall",
    heading: "Rec",
    measure: "map",
    of: (own) => own.recall,
    hint: `fraction of objects matched by detections above the threshold, by COCO's matching at ${AT}`,
  },
];

/** Return the columns of COCO metrics of the selected detector, in the format of `groupColumns`; may be empty. */
probox.groupColumns.push((id, store, state) => {
  const result = store.results[state.main];
  if (!result.boxes) return [];
  const view = store.view(state.main, state.t);
  const own = GROUPS[id].names(store).map((_, group) => GROUPS[id].boxes(view, group));
  return BOX_COLUMNS.filter((column) => result.measures.includes(column.measure)).map((column) => {
    const hint = typeof column.hint === "string" ? column.hint : column.hint[id];
    return {
      key: column.key,
      heading: column.heading,
      values: own.map((one) => (one ? column.of(one) : NaN)),
      text: (value) => percent(value),
      hint: `${hint}, ${result.name}`,
    };
  });
});

/** Draw the table of classes or sizes: PDQ of every result, and details of the selected one. */
function renderGroups(/** @type {GroupTable} */ id, /** @type {Store} */ store, /** @type {State} */ state) {
  const { key, heading, sort: first, names, rows: rowsOf } = GROUPS[id];
  const tables = store.results.map((_, r) => rowsOf(store.view(r, state.t)));
  const main = tables[state.main],
    own = store.results[state.main].name;
  const high = Math.max(...tables.flatMap((table) => table.map((row) => row.PDQ).filter(Number.isFinite)), 1e-9);
  const further = probox.groupColumns.flatMap((columns) => columns(id, store, state));
  const details = store.index.columns.filter((one) => !(one.key in store.results[0].whole) && one.key !== "PDQ");
  /** @type {GroupColumn[]} */
  const columns = [
    { key: "objects", heading: "objects", values: main.map((row) => row.objects), text: count },
    ...tables.map((table, r) => ({
      key: `PDQ-${r}`,
      heading: `PDQ ${store.results[r].name}`,
      hint: `PDQ of ${store.results[r].name}`,
      values: table.map((row) => row.PDQ),
      text: (/** @type {number} */ value) => percent(value),
      look: (/** @type {number} */ value) => ({
        class: "bar",
        style: `--share:${Math.max(0, value / high || 0)};--colour:${probox.line(r)}`,
      }),
    })),
    ...further.filter((column) => column.early),
    ...details.map((column) => ({
      key: column.key,
      heading: column.heading,
      hint: `${probox.hintOf(column)}, ${own}`,
      values: main.map((row) => row[/** @type {keyof Row} */ (column.key)]),
      text: (/** @type {number} */ value) => show(column, value),
    })),
    ...further.filter((column) => !column.early),
  ];
  const rows = names(store)
    .map((name, group) => {
      const numbers = Object.fromEntries(columns.map((column) => [column.key, column.values[group]]));
      return { group, name, numbers: { group, ...numbers } };
    })
    .filter(({ group }) => tables.some((table) => Number.isFinite(table[group].PDQ)));
  const sort = groupOrder[id];
  const change = (/** @type {Sort} */ next) => {
    groupOrder[id] = next;
    renderGroups(id, store, probox.state());
  };
  const head = [
    sortable(heading, first, sort, change, null, false),
    ...columns.map((column) => sortable(column.heading, column.key, sort, change, column.hint)),
  ];
  const body = sorted(rows, sort).map(({ group, name }) => {
    const chosen = group === state[key];
    const choice = {
      type: "button",
      "data-key": `row-${group}`,
      "aria-pressed": String(chosen),
      onclick: () => choose(key, chosen ? null : group),
    };
    const cells = columns.map((column) => {
      const value = column.values[group],
        ends = column.ends?.(group);
      const data = { "data-column": column.key, "data-low": ends?.low, "data-high": ends?.high };
      return probox.cell(value, data, column.look?.(value), column.text(value, group));
    });
    return probox.row(h("button", choice, name), { class: chosen ? "chosen" : null }, cells);
  });
  probox.fillTable(probox.byId(id), probox.head(head), h("tbody", body));
  for (const place of document.querySelectorAll(".groups .whose"))
    place.replaceChildren("columns after PDQ: ", probox.glyph(probox.line(state.main), state.main), own);
}

/** Redraw the tables of classes and sizes, for example after new intervals. */
probox.renderGroupsAgain = () => {
  for (const id of TABLES) renderGroups(id, probox.store, probox.state());
};

/** Select a group and scroll to the gallery. */
function choose(/** @type {"class" | "size"} */ key, /** @type {number | null} */ group) {
  probox.update({ [key]: group });
  if (group !== null) probox.byId("gallery").scrollIntoView({ behavior: "smooth" });
}

probox.follow(["t"], renderSummary);
for (const id of TABLES) {
  probox.follow(["t", "main", "rival", GROUPS[id].key], (store, state) => renderGroups(id, store, state), "frame", id);
}

/** Return the detector of the details in a table of groups. */
const whose = (/** @type {Store} */ store, /** @type {State} */ state) =>
  `columns after PDQ: ${store.results[state.main].name}`;

probox.onStart(() => {
  probox.exportable("summary", { tools: "summary-tools", more: probox.intervalWords });
  probox.exportable("classes", { more: whose });
  probox.exportable("sizes", { more: whose });
});
