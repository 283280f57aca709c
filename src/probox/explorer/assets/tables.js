// Tables: the paper's Table 1 for all results, and classes and sizes that choose what the gallery shows.
const { probox } = window;
const { h, percent, count } = probox;

// What the columns are, the index says: key, heading, hint, unit, which end is better ("high", "low" or null), whether
// 1 minus the number is shown, and whether the page can make it follow the threshold.
/** @type {Record<Column["unit"], (value: number) => string>} */
const WRITTEN = {
  "per cent": percent,
  count: (value) => count(Math.round(value)),
  plain: (value) => value.toFixed(4),
};
const show = (/** @type {Column} */ column, /** @type {number} */ value) =>
  Number.isFinite(value) ? WRITTEN[column.unit](value) : "–";

/** Return the rows of Table 1 at a threshold; what cannot follow it has no number there. */
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

/** Return the columns of measures that all results were asked for. */
function shownColumns(/** @type {Store} */ store) {
  return store.index.columns.filter((column) =>
    store.results.every((result) => !(column.key in result.whole) || result.whole[column.key] !== null),
  );
}

/** Return what a column is, in words. */
probox.hintOf = ({ heading, hint, better, follows }) =>
  `${hint || heading}${follows ? "" : ", of all detections"}` +
  (better ? `; ${better === "high" ? "higher" : "lower"} is better` : "");

/**
 * Return the best value of each column, compared as it is shown; none if there is nothing to compare: detectors
 * without detections do not compete, and equals have no best.
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
 * Make a heading that sorts when pressed.
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

/** Return the interval of a result's number at a threshold, as { low, high }, or null; whoever has some replaces it. */
probox.intervalOf = () => null;

/** Return what intervals are, for the line under the table. */
probox.intervalWords = () => "";

/** Draw the summary again, say because intervals have come. */
probox.renderSummaryAgain = () => renderSummary(probox.store, probox.state());

/** @type {Sort} */
let order = { key: "number", down: false }; // as the results were given

/**
 * Return why a number does not follow the threshold, or null if it does.
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
  return `not known at a threshold; ${show(column, whole)} of all detections`;
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
    sortable("detector", "number", order, change, "in the order given", false),
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
 * Further columns of the tables of classes and sizes: functions of ("classes" or "sizes", store, state) that give a
 * list of { key, heading, hint, values, text(value, group) }, `values` one number per group. Those
 * with `early` stand right behind PDQ; `ends(group)` gives an interval, { low, high } or null, for exports.
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

// COCO's numbers of a class or size. Precision and recall stand for what the threshold leaves, not for an optimum.
const AT = `IoU ${probox.constants.BOXES.OVERLAPS[0]}`;
/** @type {BoxColumn[]} */
const BOX_COLUMNS = [
  {
    key: "AP",
    heading: "AP",
    measure: "map",
    of: (own) => own.mAP,
    hint: {
      classes: "COCO's average precision, IoU 0.50:0.95",
      sizes: "COCO's average precision among objects of the size, IoU 0.50:0.95, mean over classes",
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
        "1 minus the optimal localization-recall-precision error among objects of the size, mean over classes; higher is better",
    },
  },
  {
    key: "precision",
    heading: "Prec",
    measure: "map",
    of: (own) => own.precision,
    hint: `share of right ones among the detections above the threshold, by COCO's matching at ${AT}`,
  },
  {
    key: "recall",
    heading: "Rec",
    measure: "map",
    of: (own) => own.recall,
    hint: `share of the objects that detections above the threshold find, by COCO's matching at ${AT}`,
  },
];

/** Return COCO's columns of the chosen detector, as `groupColumns` gives columns; none where they are not known. */
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

/** Draw the table of classes or sizes: PDQ of every result, the details of the chosen one. */
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
      const told = { "data-column": column.key, "data-low": ends?.low, "data-high": ends?.high };
      return probox.cell(value, told, column.look?.(value), column.text(value, group));
    });
    return probox.row(h("button", choice, name), { class: chosen ? "chosen" : null }, cells);
  });
  probox.fillTable(probox.byId(id), probox.head(head), h("tbody", body));
  for (const place of document.querySelectorAll(".groups .whose"))
    place.replaceChildren("columns after PDQ: ", probox.glyph(probox.line(state.main), state.main), own);
}

/** Draw the tables of classes and sizes again, say because further columns know more. */
probox.renderGroupsAgain = () => {
  for (const id of TABLES) renderGroups(id, probox.store, probox.state());
};

/** Choose a group, and go where its images are. */
function choose(/** @type {"class" | "size"} */ key, /** @type {number | null} */ group) {
  probox.update({ [key]: group });
  if (group !== null) probox.byId("gallery").scrollIntoView({ behavior: "smooth" });
}

probox.follow(["t"], renderSummary);
for (const id of TABLES) {
  probox.follow(["t", "main", "rival", GROUPS[id].key], (store, state) => renderGroups(id, store, state), "frame", id);
}

/** Return whose details a table of groups has. */
const whose = (/** @type {Store} */ store, /** @type {State} */ state) =>
  `columns after PDQ: ${store.results[state.main].name}`;

probox.onStart(() => {
  probox.exportable("summary", { tools: "summary-tools", more: probox.intervalWords });
  probox.exportable("classes", { more: whose });
  probox.exportable("sizes", { more: whose });
});
