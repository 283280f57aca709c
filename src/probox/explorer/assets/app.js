// The page: one state, kept in the address so that a link brings it back, and what follows from it.
"use strict";
(() => {
  const probox = (window.probox = window.probox || {});
  const { h, s, byId, percent } = probox;
  const { IOUS, QUALITIES, SIZES, VERDICT, VERDICTS } = probox.constants;
  const { TP } = VERDICT;

  const DEFAULTS = { t: null, main: 0, sort: "worst", class: null, size: null, verdict: "", quality: "pPDQ", lo: 0, hi: 1,
    find: "", image: null, other: null, layers: "pmbel", pick: null, of: "pPDQ", iou: "50" };
  const FILTERED = ["TP", "FP", "FN"];
  let store;
  let state = { ...DEFAULTS };

  // --- the address ---

  /** Return the state that the address tells; what makes no sense there is left out. */
  function read() {
    const words = new URLSearchParams(location.hash.slice(1));
    const next = { ...DEFAULTS };
    const number = (name, low, high) => {
      const value = Number(words.get(name));
      return words.get(name) !== null && words.get(name) !== "" && value >= low && value <= high ? value : null;
    };
    const results = store.results.length;
    next.t = number("t", store.index.lowest, 1);
    next.main = Math.trunc(number("detector", 0, results - 1) ?? 0);
    next.other = number("beside", 0, results - 1);
    next.image = number("image", -Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
    next.lo = number("from", 0, 1) ?? 0;
    next.hi = number("to", 0, 1) ?? 1;
    const name = store.classes.indexOf(words.get("class"));
    next.class = name < 0 ? null : name;
    const size = SIZES.indexOf(words.get("size"));
    next.size = size < 0 ? null : size;
    const pick = (key, word, allowed) => { if (allowed.includes(words.get(word))) next[key] = words.get(word); };
    pick("sort", "sort", ["worst", "best", "missed", "wrong", "crowded", "number"]);
    pick("verdict", "verdict", FILTERED);
    pick("quality", "quality", QUALITIES);
    pick("of", "distribution", QUALITIES);
    pick("iou", "iou", Object.keys(IOUS));
    next.find = words.get("find") || "";
    if (/^[pmbehl]*$/.test(words.get("layers") ?? "-")) next.layers = words.get("layers");
    if (/^[do]\d+$/.test(words.get("pick") || "")) next.pick = words.get("pick");
    return next;
  }

  /** Return the part of the address that brings the state back. */
  function written() {
    const words = new URLSearchParams();
    const put = (name, key, text = state[key]) => { if (state[key] !== DEFAULTS[key]) words.set(name, text); };
    put("t", "t");
    put("detector", "main");
    put("sort", "sort");
    put("class", "class", store.classes[state.class]);
    put("size", "size", SIZES[state.size]);
    put("verdict", "verdict");
    put("quality", "quality");
    put("from", "lo");
    put("to", "hi");
    put("find", "find");
    put("distribution", "of");
    put("iou", "iou");
    put("image", "image");
    put("beside", "other");
    put("layers", "layers");
    put("pick", "pick");
    return words.toString();
  }

  /** Change the state; `push` makes a step that the browser's back button undoes. */
  probox.update = (changes, push = false) => {
    const before = state;
    state = { ...state, ...changes };
    const hash = written();
    const url = hash ? `#${hash}` : location.pathname + location.search;
    try {
      if (push) history.pushState(null, "", url);
      else history.replaceState(null, "", url);
    } catch { /* too many changes a second for some browsers, or a page without an address */ }
    render(before);
  };

  window.addEventListener("popstate", () => {
    const before = state;
    state = read();
    render(before);
  });

  // --- what follows ---

  const slow = probox.eachFrame(() => {
    renderCharts();
    renderTables();
    probox.renderGallery(store, state);
  });

  function render(before) {
    const changed = new Set(Object.keys(state).filter((key) => !before || before[key] !== state[key]));
    const some = (...keys) => keys.some((key) => changed.has(key));
    if (some("t")) {
      renderThreshold();
      probox.renderSummary(store, state);
    }
    if (some("main", "class", "size", "verdict", "quality", "lo", "hi", "find", "sort")) renderFilters();
    if (some("t")) slow();
    else {
      if (some("of", "iou")) renderCharts();
      if (some("main", "class", "size")) renderTables();
      if (some("main", "class", "size", "verdict", "quality", "lo", "hi", "find", "sort")) probox.renderGallery(store, state);
    }
    if (some("image", "t", "main", "other", "layers", "pick")) probox.renderViewer(store, state);
  }

  function renderTables() {
    const toGallery = (changes) => {
      probox.update(changes);
      if (Object.values(changes)[0] !== null) byId("gallery").scrollIntoView({ behavior: "smooth" });
    };
    probox.renderClasses(store, state, (group) => toGallery({ class: group }));
    probox.renderSizes(store, state, (group) => toGallery({ size: group }));
  }

  function renderThreshold() {
    byId("threshold").min = byId("exact").min = String(store.index.lowest);
    byId("threshold").value = String(state.t ?? store.index.lowest);
    if (document.activeElement !== byId("exact")) byId("exact").value = state.t === null ? "" : String(state.t);
    byId("threshold").setAttribute("aria-valuetext", state.t === null ? "no threshold" : String(state.t));
    const best = store.results.map((result, r) => ({ name: result.name, r, ...store.view(r, state.t).total() }));
    byId("readout").replaceChildren(...best.map((row) => h("span", { "data-result": row.r },
      h("i", { class: "swatch", style: `background:${probox.line(row.r)}` }), h("span", { class: "name" }, row.name),
      h("b", { "data-value": "PDQ" }, percent(row.PDQ)), h("span", { class: "counts" }, `${probox.count(row.TP)} TP · ${probox.count(row.FP)} FP · ${probox.count(row.FN)} FN`))));
  }

  function renderFilters() {
    for (const [id, key] of [["detector", "main"], ["sort", "sort"], ["verdict", "verdict"], ["quality", "quality"]]) {
      byId(id).value = String(state[key]);
    }
    byId("class").value = state.class === null ? "" : String(state.class);
    byId("size").value = state.size === null ? "" : String(state.size);
    if (document.activeElement !== byId("find")) byId("find").value = state.find;
    if (document.activeElement !== byId("from")) byId("from").value = String(100 * state.lo);
    if (document.activeElement !== byId("to")) byId("to").value = String(100 * state.hi);
    const any = ["class", "size", "verdict", "quality", "lo", "hi", "find"].some((key) => state[key] !== DEFAULTS[key]);
    byId("clear").hidden = !any;
  }

  const named = (r) => ({ name: store.results[r].name, colour: probox.lineColour(r) });

  function renderCharts() {
    const results = store.results.map((_, r) => r);
    const pickThreshold = (x) => {
      const value = Math.round(100 * x) / 100;
      probox.update({ t: value > store.index.lowest ? value : null });
    };
    probox.lineChart(byId("chart-pdq"), { xRange: [0, 1], xLabel: "label threshold", yLabel: "PDQ, %", marker: state.t ?? NaN,
      label: "PDQ against the label threshold", format: (value) => (Number.isFinite(value) ? value.toFixed(2) : "–"), onPick: pickThreshold,
      series: results.map((r) => ({ ...named(r), x: store.index.thresholds, y: store.results[r].curve.PDQ.map((v) => (v === null ? NaN : 100 * v)) })) });
    const styles = [["TP", ""], ["FP", "7 4"], ["FN", "2 4"]];
    const cap = 3 * store.objects.class.length || Infinity; // false positives by the thousand would hide the rest
    probox.lineChart(byId("chart-counts"), { xRange: [0, 1], xLabel: "label threshold", yLabel: "count", marker: state.t ?? NaN,
      label: "true positives, false positives and missed objects against the label threshold", format: (value) => (Number.isFinite(value) ? probox.count(value) : "–"),
      onPick: pickThreshold, yRange: store.results.some((result) => Math.max(...result.curve.FP) > cap) ? [0, cap] : null,
      series: results.flatMap((r) => styles.map(([key, dash]) => ({ ...named(r), name: `${store.results[r].name} ${key}`, dash,
        x: store.index.thresholds, y: store.results[r].curve[key] }))) });
    const bins = 25;
    probox.lineChart(byId("chart-qualities"), { xRange: [0, 1], xLabel: `${state.of} quality`, yLabel: "true positives, %",
      label: `distribution of ${state.of} quality`, format: (value) => `${value.toFixed(1)} %`,
      series: results.map((r) => ({ ...named(r), step: true, ...histogram(r, bins) })) });
    const cloud = (id, x, y, levels) => probox.cloudChart(byId(id), { xLabel: `${x} quality`, yLabel: `${y} quality`, height: 320,
      levels, label: `${y} against ${x} quality of every true positive`,
      series: results.map((r) => ({ ...named(r), r, ...points(r, x, y) })),
      onPick: (one, i) => open(one.r, one.rows[i]) });
    cloud("chart-spatial", "label", "spatial", true);
    cloud("chart-ground", "background", "foreground", false);
    probox.lineChart(byId("chart-recall"), { xRange: [0, 1], yRange: [0, 1.02], xLabel: "recall", yLabel: "precision",
      label: "precision against recall, mean over classes", height: 320, format: (value) => percent(value, 1),
      series: results.filter((r) => store.results[r].recall).map((r) => ({ ...named(r),
        name: `${store.results[r].name} (AP ${percent(mean(store.results[r].recall[state.iou]), 1)})`,
        x: store.results[r].recall[state.iou].map((_, i) => i / 100), y: store.results[r].recall[state.iou] })) });
    probox.barChart(byId("chart-sizes"), { groups: SIZES, label: "PDQ of small, medium and large objects", format: percent,
      series: results.map((r) => ({ ...named(r), values: store.view(r, state.t).perSize().map((row) => row.PDQ) })) });
    byId("legend").replaceChildren(...results.map((r) => h("span", {}, h("i", { class: "swatch",
      style: `background:${probox.line(r)}` }), store.results[r].name)));
    for (const [id, key] of [["of", "of"], ["iou", "iou"]]) byId(id).value = state[key];
  }

  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

  function histogram(r, bins) {
    const view = store.view(r, state.t);
    const counts = new Array(bins).fill(0);
    let total = 0;
    for (let d = 0; d < view.verdict.length; d++) {
      if (view.verdict[d] !== TP) continue;
      counts[Math.min(bins - 1, Math.floor(view.result.pairs[state.of][view.pair[d]] * bins))]++;
      total++;
    }
    const shares = counts.map((n) => (100 * n) / Math.max(total, 1));
    return { x: [...shares.map((_, i) => i / bins), 1], y: [...shares, shares[bins - 1]] };
  }

  function points(r, x, y) {
    const view = store.view(r, state.t);
    const found = { x: [], y: [], rows: [] };
    for (let d = 0; d < view.verdict.length; d++) {
      if (view.verdict[d] !== TP) continue;
      found.x.push(view.result.pairs[x][view.pair[d]]);
      found.y.push(view.result.pairs[y][view.pair[d]]);
      found.rows.push(d);
    }
    return found;
  }

  /** Open the image of a detection, with it picked. */
  function open(r, d) {
    const { offsets } = store.results[r].detections;
    let row = 0;
    while (offsets[row + 1] <= d) row++;
    probox.update({ main: r, image: store.images.id[row], pick: `d${d - offsets[row]}` }, true);
  }

  // --- the start ---

  function listen() {
    const on = (id, event, work) => byId(id).addEventListener(event, work);
    on("threshold", "input", (event) => {
      const value = Number(event.target.value);
      probox.update({ t: value > store.index.lowest ? value : null });
    });
    on("exact", "input", (event) => {
      const value = Number(event.target.value);
      if (event.target.value === "") probox.update({ t: null });
      else if (value >= store.index.lowest && value <= 1) probox.update({ t: value });
    });
    on("markdown", "click", () => probox.copy(probox.summaryAsMarkdown(store, state), "Markdown"));
    on("latex", "click", () => probox.copy(probox.summaryAsLatex(store, state), "LaTeX"));
    on("share", "click", () => probox.copy(location.href, "link"));
    const choose = (id, key, convert = (text) => text) => on(id, "change", (event) => probox.update({ [key]: convert(event.target.value) }));
    const orNull = (text) => (text === "" ? null : Number(text));
    choose("detector", "main", Number);
    choose("sort", "sort");
    choose("verdict", "verdict");
    choose("quality", "quality");
    choose("class", "class", orNull);
    choose("size", "size", orNull);
    choose("of", "of");
    choose("iou", "iou");
    on("filters", "submit", (event) => event.preventDefault());
    on("find", "input", (event) => probox.update({ find: event.target.value }));
    const share = (text, otherwise) => (text === "" || !(Number(text) >= 0 && Number(text) <= 100) ? otherwise : Number(text) / 100);
    on("from", "input", (event) => probox.update({ lo: share(event.target.value, 0) }));
    on("to", "input", (event) => probox.update({ hi: share(event.target.value, 1) }));
    on("clear", "click", () => probox.update({ class: null, size: null, verdict: "", quality: "pPDQ", lo: 0, hi: 1, find: "" }));
    on("theme", "click", () => {
      const dark = matchMedia("(prefers-color-scheme: dark)").matches;
      const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
      setTheme(now === "dark" ? "light" : "dark");
      redraw();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    let width = window.innerWidth;
    window.addEventListener("resize", probox.eachFrame(() => {
      if (window.innerWidth === width) return;
      width = window.innerWidth;
      renderCharts();
    }));
  }

  function setTheme(name) {
    document.documentElement.dataset.theme = name;
    try { localStorage.setItem("probox-theme", name); } catch { /* a page from disk may have no storage */ }
  }

  function redraw() {
    probox.forgetColours();
    probox.renderSummary(store, state);
    renderCharts();
    probox.renderGallery(store, state);
    probox.renderViewer(store, state);
  }

  function fillChoices() {
    const offer = (id, choices) => byId(id).append(...choices.map(([value, text]) => h("option", { value: String(value) }, text)));
    for (const id of ["of", "quality"]) offer(id, QUALITIES.map((quality) => [quality, quality]));
    offer("iou", Object.entries(IOUS));
    offer("size", SIZES.map((name, size) => [size, name]));
    offer("verdict", FILTERED.map((name) => [name, VERDICTS[VERDICT[name]]]));
    byId("detector").append(...store.results.map((result, r) => h("option", { value: String(r) }, result.name)));
    byId("detector").closest("label").hidden = store.results.length < 2;
    const used = new Set([...store.objects.class, ...store.results.flatMap((result) => [...result.detections.class])]);
    byId("class").append(...store.classes.map((name, number) => ({ name, number })).filter(({ number }) => used.has(number))
      .sort((a, b) => a.name.localeCompare(b.name)).map(({ name, number }) => h("option", { value: String(number) }, name)));
    byId("about").replaceChildren(...store.results.map((result) => h("li", {}, h("b", {}, result.name), `: ${result.about}`)));
    byId("counts").textContent = `${probox.count(store.count)} images, ${probox.count(store.objects.class.length)} objects`;
    if (!store.results.some((result) => result.recall)) byId("chart-recall").closest(".card").hidden = true;
  }

  /** Called by the index file. */
  probox.start = (index) => {
    store = new probox.Store(index);
    probox.store = store;
    try {
      const theme = localStorage.getItem("probox-theme");
      if (theme) document.documentElement.dataset.theme = theme;
    } catch { /* see setTheme */ }
    fillChoices();
    state = read();
    listen();
    probox.startGallery(store, () => state);
    probox.startViewer(store, () => state);
    render(null);
    document.documentElement.dataset.ready = "true";
  };
  probox.state = () => state;
})();
