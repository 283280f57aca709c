// Tables: the paper's Table 1 for all results, and classes and sizes that choose what the gallery shows.
"use strict";
(() => {
  const probox = (window.probox = window.probox || {});
  const { h, percent, count } = probox;

  // What the columns are, the index says: key, heading, hint, unit, which end is better ("high", "low" or null), and
  // whether the number is fixed, since the page can follow the threshold with PDQ alone.
  const WRITTEN = { "per cent": percent, count, plain: (value) => value.toFixed(4) };
  const show = (column, value) => (Number.isFinite(value) ? WRITTEN[column.unit](value) : "–");

  /** Return the rows of Table 1 at the current threshold. */
  function summaryRows(store, threshold) {
    return store.results.map((result, r) => ({
      number: r, name: result.name, ...store.view(r, threshold).total(), ...result.fixed }));
  }

  function shownColumns(store, rows) {
    return store.index.columns.filter((column) => !column.fixed || rows.every((row) => Number.isFinite(row[column.key])));
  }

  /** Return the best value of each column, compared as it is shown; none if there is nothing to compare. */
  function bestOf(columns, rows) {
    return Object.fromEntries(columns.map((column) => {
      const values = rows.map((row) => row[column.key]).filter(Number.isFinite);
      if (rows.length < 2 || !values.length || !column.better) return [column.key, null];
      return [column.key, show(column, column.better === "low" ? Math.min(...values) : Math.max(...values))];
    }));
  }

  function sorted(rows, { key, down }) {
    const value = (row) => row[key];
    return [...rows].sort((a, b) => {
      const [p, q] = [value(a), value(b)];
      if (typeof p === "string") return (down ? -1 : 1) * p.localeCompare(q);
      if (!Number.isFinite(p) || !Number.isFinite(q)) return Number.isFinite(q) - Number.isFinite(p);
      return down ? q - p : p - q;
    });
  }

  /** Make a heading that sorts when pressed. */
  function sortable(title, key, sort, change, hint, first = true) {
    const active = sort.key === key;
    const button = h("button", { type: "button", title: hint || null, "data-key": key,
      onclick: () => change({ key, down: active ? !sort.down : first }) }, title);
    return h("th", { scope: "col", "aria-sort": active ? (sort.down ? "descending" : "ascending") : "none" }, button);
  }

  /** Put new content into a table; the heading that had the focus keeps it. */
  function replace(table, ...content) {
    const focused = table.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    table.replaceChildren(...content);
    if (focused) [...table.querySelectorAll("[data-key]")].find((one) => one.dataset.key === focused)?.focus();
  }

  /** Return the interval of a result's number at a threshold, as { low, high }, or null; whoever has some replaces it. */
  probox.intervalOf = () => null;

  /** Draw the summary again, say because intervals have come. */
  probox.renderSummaryAgain = () => renderSummary(probox.store, probox.state());

  const intervalText = (column, { low, high }) => `${show(column, low)}–${show(column, high)}`;

  let order = { key: "PDQ", down: true };

  function renderSummary(store, state) {
    const rows = sorted(summaryRows(store, state.t), order);
    const columns = shownColumns(store, rows);
    const best = bestOf(columns, rows);
    const change = (next) => { order = next; renderSummary(store, state); };
    const head = h("tr", {}, sortable("detector", "name", order, change, null, false),
      columns.map((column) => sortable(column.heading, column.key, order, change, column.hint)));
    const body = rows.map((row) => h("tr", { "data-result": row.number },
      h("th", { scope: "row" }, h("i", { class: "swatch", style: `background:${probox.lineColour(row.number)}` }), row.name),
      columns.map((column) => {
        const text = show(column, row[column.key]);
        const isBest = best[column.key] === text;
        const stale = column.fixed && state.t !== null;
        const interval = probox.intervalOf(row.number, column.key, state.t);
        return h("td", { "data-column": column.key, class: [isBest && "best", stale && "stale"].filter(Boolean).join(" ") || null,
          title: stale ? "of all detections, whatever the threshold" : null }, text,
        interval && h("small", { class: "interval" }, intervalText(column, interval)));
      })));
    replace(probox.byId("summary"), h("thead", {}, head), h("tbody", {}, body));
  }

  function summaryAsMarkdown(store, state) {
    const rows = sorted(summaryRows(store, state.t), order);
    const columns = shownColumns(store, rows);
    const best = bestOf(columns, rows);
    const escape = (text) => text.replace(/[\\|*_`<>[\]]/g, "\\$&");
    const cell = (column, row) => {
      const text = show(column, row[column.key]);
      return best[column.key] === text ? `**${text}**` : text;
    };
    return [["", ...columns.map((column) => column.heading)], ["---", ...columns.map(() => "---:")],
      ...rows.map((row) => [escape(row.name), ...columns.map((column) => cell(column, row))])]
      .map((cells) => `| ${cells.join(" | ")} |`).join("\n") + "\n";
  }

  const LATEX = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}" };

  function summaryAsLatex(store, state) {
    const rows = sorted(summaryRows(store, state.t), order);
    const columns = shownColumns(store, rows);
    const best = bestOf(columns, rows);
    const escape = (text) => text.replace(/[\\~^&%$#_{}]/g, (sign) => LATEX[sign] || `\\${sign}`);
    const cell = (column, row) => {
      const text = show(column, row[column.key]).replace("–", "--");
      return best[column.key] === show(column, row[column.key]) ? `\\textbf{${text}}` : text;
    };
    const line = (cells) => `  ${cells.join(" & ")} \\\\`;
    return [`\\begin{tabular}{l${"r".repeat(columns.length)}}`, "  \\toprule",
      line(["", ...columns.map((column) => column.heading)]), "  \\midrule",
      ...rows.map((row) => line([escape(row.name), ...columns.map((column) => cell(column, row))])),
      "  \\bottomrule", "\\end{tabular}"].join("\n") + "\n";
  }

  /**
   * Further columns of the tables of classes and sizes: functions of ("classes" or "sizes", store, state) that give a
   * list of { key, heading, hint, values, text(value, group), tone(value, group) }, `values` one number per group.
   */
  probox.groupColumns = [];

  const groupOrder = { classes: { key: "objects", down: true }, sizes: { key: "group", down: false } };

  /** Draw the table of classes or sizes: PDQ of every result, the details of the chosen one. */
  function renderGroups(id, store, state, names, tables, chosen, filter) {
    const main = tables[state.main];
    const further = probox.groupColumns.flatMap((columns) => columns(id, store, state));
    const rows = names.map((name, group) => ({ group, name, ...main[group],
      ...Object.fromEntries(further.map((column) => [column.key, column.values[group]])),
      ...Object.fromEntries(tables.map((table, r) => [`PDQ-${r}`, table[group].PDQ])) }))
      .filter((row) => tables.some((table) => Number.isFinite(table[row.group].PDQ)));
    const high = Math.max(...rows.flatMap((row) => tables.map((_, r) => row[`PDQ-${r}`]).filter(Number.isFinite)), 1e-9);
    const change = (next) => { groupOrder[id] = next; renderGroups(id, store, state, names, tables, chosen, filter); };
    const details = store.index.columns.filter((column) => !column.fixed && column.key !== "PDQ");
    const sort = groupOrder[id];
    const head = h("tr", {}, sortable(id === "classes" ? "class" : "size", id === "classes" ? "name" : "group", sort, change,
      null, false), sortable("objects", "objects", sort, change),
    store.results.map((result, r) => sortable(store.results.length > 1 ? `PDQ ${result.name}` : "PDQ", `PDQ-${r}`, sort, change)),
    details.map((column) => sortable(column.heading, column.key, sort, change,
      store.results.length > 1 ? `${column.hint}, ${store.results[state.main].name}` : column.hint)),
    further.map((column) => sortable(column.heading, column.key, sort, change, column.hint)));
    const body = sorted(rows, sort).map((row) => h("tr", { class: row.group === chosen ? "chosen" : null },
      h("th", { scope: "row" }, h("button", { type: "button", "data-key": `row-${row.group}`,
        "aria-pressed": String(row.group === chosen), onclick: () => filter(row.group === chosen ? null : row.group) }, row.name)),
      h("td", {}, count(row.objects)),
      tables.map((_, r) => h("td", { class: "bar",
        style: `--share:${Math.max(0, row[`PDQ-${r}`] / high || 0)};--colour:${probox.line(r)}` }, percent(row[`PDQ-${r}`]))),
      details.map((column) => h("td", {}, show(column, row[column.key]))),
      further.map((column) => h("td", { "data-column": column.key, class: column.tone?.(row[column.key], row.group) || null },
        column.text(row[column.key], row.group)))));
    replace(probox.byId(id), h("thead", {}, head), h("tbody", {}, body));
  }

  /** Choose a group, and go where its images are. */
  const choose = (key) => (group) => {
    probox.update({ [key]: group });
    if (group !== null) probox.byId("gallery").scrollIntoView({ behavior: "smooth" });
  };

  probox.follow(["t"], renderSummary);
  probox.follow(["t", "main", "class"], (store, state) => renderGroups("classes", store, state, store.classes,
    store.results.map((_, r) => store.view(r, state.t).perClass()), state.class, choose("class")), "frame");
  probox.follow(["t", "main", "size"], (store, state) => renderGroups("sizes", store, state, probox.constants.SIZES,
    store.results.map((_, r) => store.view(r, state.t).perSize()), state.size, choose("size")), "frame");

  probox.onStart((store) => {
    const on = (id, work) => probox.byId(id).addEventListener("click", work);
    on("markdown", () => probox.copy(summaryAsMarkdown(store, probox.state()), "Markdown"));
    on("latex", () => probox.copy(summaryAsLatex(store, probox.state()), "LaTeX"));
  });
})();
