// The caption of every table: threshold, convention, number of images, version.
const { probox } = window;
const { h, byId } = probox;

/** Return the common text of all results, or each different text with the names of its results. */
function ofAll(/** @type {Store} */ store, /** @type {(result: Result, r: number) => string} */ textOf) {
  const names = new Map();
  store.results.forEach((result, r) => {
    const text = textOf(result, r);
    names.set(text, [...(names.get(text) || []), result.name]);
  });
  if (names.size === 1) return [...names.keys()][0];
  return [...names].map(([text, own]) => `${text} (${own.join(", ")})`).join(", ");
}

/** Return the label threshold as text. */
probox.thresholdText = (store, state) => {
  const text = ofAll(store, ({ convention }) => String(state.t ?? convention.label_threshold ?? "none"));
  return text === "none" ? "no label threshold" : `label threshold ${text}`;
};

/** Return the caption of a table. */
probox.caption = (store, state) =>
  [
    probox.thresholdText(store, state),
    `convention ${ofAll(store, (result) => result.words)}`,
    `${probox.count(store.count)} ${store.count === 1 ? "image" : "images"}`,
    `probox ${store.index.version}`,
  ].join("; ");

// Export of tables as Markdown, LaTeX or CSV, with their captions.
//
// Exports have the order and columns of the table on the page. Rounded cells contain the exact number in `data-value`,
// and intervals in `data-low` and `data-high`.

/** @type {Map<string, Exporting>} */
const made = new Map(); // by the table's id

/** @typedef {ReturnType<typeof read>} CellText */
/** @typedef {ReturnType<typeof content>} TableText */

/** Return the content of a cell, its interval separately. */
function read(/** @type {HTMLTableCellElement} */ cell) {
  const copy = /** @type {HTMLElement} */ (cell.cloneNode(true)); // cloneNode returns a Node
  const aside = copy.querySelector(".interval");
  aside?.remove();
  const number = (/** @type {string | undefined} */ text) => (text === undefined || text === "" ? NaN : Number(text));
  return {
    text: copy.textContent.replace(/\s+/g, " ").trim(),
    interval: aside?.textContent || "",
    value: number(cell.dataset.value),
    low: number(cell.dataset.low),
    high: number(cell.dataset.high),
    best: cell.classList.contains("best"),
  };
}

/** Return a table's headings and rows of cells. */
function content(/** @type {HTMLTableElement} */ table) {
  const cells = (/** @type {HTMLTableRowElement} */ row) => [...row.cells].map(read);
  const head = [...(table.tHead?.rows || [])].at(-1);
  return {
    head: head ? cells(head).map((cell) => cell.text) : [],
    rows: [...table.tBodies].flatMap((body) => [...body.rows]).map(cells),
  };
}

function asMarkdown(/** @type {TableText} */ { head, rows }, /** @type {string} */ caption) {
  const escape = (/** @type {string} */ text) => text.replace(/[\\|*_`<>[\]]/g, "\\$&");
  const cell = (/** @type {CellText} */ one) =>
    (one.best ? `**${escape(one.text)}**` : escape(one.text)) + (one.interval ? ` (${one.interval})` : "");
  return (
    [head.map(escape), head.map((_, c) => (c ? "---:" : "---")), ...rows.map((row) => row.map(cell))]
      .map((cells) => `| ${cells.join(" | ")} |`)
      .join("\n") + `\n\n${escape(caption)}\n`
  );
}

/** @type {Record<string, string>} */
const LATEX = {
  "\\": "\\textbackslash{}",
  "~": "\\textasciitilde{}",
  "^": "\\textasciicircum{}",
  "–": "--",
  "−": "$-$",
  "±": "$\\pm$",
  σ: "$\\sigma$",
  Δ: "$\\Delta$",
  "<": "\\textless{}",
  ">": "\\textgreater{}",
};

function asLatex(/** @type {TableText} */ { head, rows }, /** @type {string} */ caption) {
  const escape = (/** @type {string} */ text) =>
    text.replace(/[\\~^&%$#_{}–−±σΔ<>]/g, (sign) => LATEX[sign] || `\\${sign}`);
  const cell = (/** @type {CellText} */ one) =>
    (one.best ? `\\textbf{${escape(one.text)}}` : escape(one.text)) +
    (one.interval ? ` (${escape(one.interval)})` : "");
  const line = (/** @type {string[]} */ cells) => `  ${cells.join(" & ")} \\\\`;
  return (
    [
      `\\begin{tabular}{l${"r".repeat(Math.max(head.length - 1, 0))}}`,
      "  \\toprule",
      line(head.map(escape)),
      "  \\midrule",
      ...rows.map((row) => line(row.map(cell))),
      "  \\bottomrule",
      "\\end{tabular}",
      `\\par\\smallskip{\\footnotesize ${escape(caption)}\\par}`,
    ].join("\n") + "\n"
  );
}

// Spreadsheets evaluate text that starts with these characters as a formula.
const FORMULA = /^[=+\-@\t\r]/;
const COUNT = /^\d{1,3}(,\d{3})*(\.\d+)?$/;

function quoted(/** @type {string} */ text) {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) || safe !== safe.trim() ? `"${safe.replace(/"/g, '""')}"` : safe;
}

/**
 * Return a table as CSV: exact numbers, fractions from 0 to 1, and separate columns for the ends of intervals.
 */
function asCsv(/** @type {TableText} */ { head, rows }, /** @type {string} */ caption) {
  const ends = head.map((_, c) => rows.some((row) => Number.isFinite(row[c]?.low)));
  const plain = (/** @type {number} */ value) => (Number.isFinite(value) ? String(value) : "");
  const own = (/** @type {CellText} */ cell) => {
    if (Number.isFinite(cell.value)) return String(cell.value);
    if (cell.text === "–") return "";
    return COUNT.test(cell.text) ? cell.text.replaceAll(",", "") : quoted(cell.text);
  };
  const lines = [
    head.flatMap((text, c) => (ends[c] ? [text, `${text} low`, `${text} high`] : [text]).map(quoted)),
    ...rows.map((row) =>
      row.flatMap((cell, c) => (ends[c] ? [own(cell), plain(cell.low), plain(cell.high)] : [own(cell)])),
    ),
  ];
  return [`# ${caption}; fractions from 0 to 1`, ...lines.map((cells) => cells.join(","))].join("\r\n") + "\r\n";
}

/** Return the caption of a table, without line breaks, because it is a comment in CSV. */
function captionOf(/** @type {string} */ id, /** @type {Store} */ store, /** @type {State} */ state) {
  const extra = made.get(id)?.more?.(store, state);
  return (probox.caption(store, state) + (extra ? `; ${extra}` : "")).replace(/\s+/g, " ");
}

/** Return the export of a table as "markdown", "latex" or "csv". */
probox.exported = (id, form) => {
  probox.settle();
  const forms = { markdown: asMarkdown, latex: asLatex, csv: asCsv };
  // Only tables are exportable.
  const table = /** @type {HTMLTableElement} */ (byId(id));
  return forms[form](content(table), captionOf(id, probox.store, probox.state()));
};

/** Add tools to the heading of a table's card or section, or above the table. */
function beside(/** @type {Element} */ place, /** @type {HTMLElement} */ tools) {
  const head = place.parentElement?.querySelector(":scope > .head, :scope > .heading, :scope > h3");
  if (!head) return place.before(tools);
  if (head.tagName === "DIV") return head.append(tools);
  head.replaceWith(h("div", { class: "head" }, head.cloneNode(true), tools));
}

/**
 * Make a table exportable: add buttons and a caption.
 *
 * `name` is the name of the file; `more(store, state)` returns text for the caption; `tools` is the id of the element
 * for the buttons, by default the heading of the table's card.
 */
probox.exportable = (id, { name = id, more = null, tools = null } = {}) => {
  made.set(id, { name, more });
  const button = (
    /** @type {string} */ text,
    /** @type {string} */ key,
    /** @type {string} */ label,
    /** @type {() => void} */ work,
  ) =>
    h(
      "button",
      { type: "button", id: `${id}-${key}`, title: label, "aria-label": `${name}: ${label}`, onclick: work },
      text,
    );
  const buttons = [
    button("Markdown", "markdown", "copy as Markdown", () => probox.copy(probox.exported(id, "markdown"), "Markdown")),
    button("LaTeX", "latex", "copy as LaTeX", () => probox.copy(probox.exported(id, "latex"), "LaTeX")),
    button("CSV", "csv", "save as CSV with full precision", () => {
      const { t } = probox.state();
      probox.download(`${name}${t === null ? "" : `-${t}`}.csv`, probox.exported(id, "csv"));
    }),
  ];
  const table = byId(id),
    place = table.closest(".scroll") || table;
  if (tools) byId(tools).append(...buttons);
  else beside(place, h("div", { class: "tools exports" }, buttons));
  place.after(h("p", { class: "note caption", "data-caption": id }));
  if (probox.store) captions(probox.store, probox.state());
};

/** @type {Work} */
function captions(store, state) {
  for (const id of made.keys()) {
    const place = document.querySelector(`[data-caption="${id}"]`);
    if (place) place.textContent = captionOf(id, store, state);
  }
}

probox.follow(["t", "main", "rival"], captions);

/** Update the captions, for example after new intervals. */
probox.captionsAgain = () => captions(probox.store, probox.state());
