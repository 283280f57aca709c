// One image large: layers, hovering, neighbours by key, two detectors side by side, zoom and pan.
"use strict";
(() => {
  const probox = (window.probox = window.probox || {});
  const { h, percent, byId } = probox;
  const { QUALITIES, VERDICTS } = probox.constants;
  const { TP, FP, FN, IGNORED, DROPPED } = probox.constants.VERDICT;

  const current = probox.state;
  let store;
  let panes = []; // { r, canvas, box }
  let geometry = null, photo = null, row = -1;
  let zoom = { scale: 1, x: 0, y: 0 }; // of the fitted picture, about its top left, in CSS pixels
  let hover = null; // { kind: "d" | "o", r, row }

  probox.field("image", null, "image", probox.wholeIn(-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER));
  probox.field("other", null, "beside", (text, theStore) => probox.wholeIn(0, theStore.results.length - 1)(text));
  probox.field("layers", "pmbel", "layers", (text) => (/^[pmbehl]*$/.test(text) ? text : undefined));
  probox.field("pick", null, "pick", (text) => (/^[do]\d+$/.test(text) ? text : undefined));

  /** Open, change or close the view, as the state says. */
  function renderViewer(theStore, state) {
    const dialog = byId("viewer");
    if (state.image === null) {
      if (dialog.open) dialog.close();
      row = -1;
      return;
    }
    const next = theStore.rowOfImage.get(state.image);
    if (next === undefined) {
      probox.say(`there is no image ${state.image}`);
      probox.update({ image: null });
      return;
    }
    if (!dialog.open) dialog.showModal();
    if (next !== row) {
      row = next;
      geometry = photo = hover = null;
      zoom = { scale: 1, x: 0, y: 0 };
      const asked = row;
      probox.withGeometry(theStore, row, (found) => {
        if (asked !== row) return;
        geometry = found;
        fill();
      });
      probox.withPhoto(theStore, row, false, (image) => { if (asked === row) { photo = image; probox.repaint(); } });
    }
    fill();
  }

  probox.follow(["image", "t", "main", "other", "layers", "pick"], renderViewer);

  /** Fill heading, panes and lists. */
  function fill() {
    const state = current();
    if (row < 0) return;
    const place = (probox.order || []).indexOf(row);
    byId("title").textContent = store.images.name[row] || `image ${store.images.id[row]}`;
    byId("place").textContent = place >= 0 ? `${place + 1} of ${probox.order.length}` : `image ${store.images.id[row]}`;
    const shown = state.other === null ? [state.main] : [state.main, state.other];
    if (panes.map((pane) => pane.r).join() !== shown.join()) {
      panes = shown.map(makePane);
      byId("panes").replaceChildren(...panes.map((pane) => pane.box));
      byId("panes").dataset.count = panes.length;
    }
    for (const pane of panes) {
      pane.box.style.setProperty("--ratio", store.images.w[row] / store.images.h[row]);
      const sum = store.view(pane.r, state.t).perImage()[row];
      pane.text.textContent = `PDQ ${percent(sum.PDQ)}, ${sum.TP} TP, ${sum.FP} FP, ${sum.FN} FN`;
    }
    for (const input of byId("layers").querySelectorAll("input")) input.checked = state.layers.includes(input.value);
    byId("other").value = state.other === null ? "" : String(state.other);
    byId("shown").value = String(state.main);
    list();
    arrange();
    probox.repaint();
  }

  /** Put two panes side by side or one above the other, whichever shows more. */
  function arrange() {
    const place = byId("panes");
    if (row < 0 || !panes.length || !place.clientWidth) return;
    const width = store.images.w[row], height = store.images.h[row], caption = 40;
    const scale = (w, h) => Math.min(w / width, (h - caption) / height);
    const beside = scale(place.clientWidth / panes.length, place.clientHeight);
    const above = scale(place.clientWidth, place.clientHeight / panes.length);
    place.dataset.way = panes.length > 1 && above > 1.05 * beside ? "rows" : "columns";
  }

  function makePane(r) {
    const canvas = h("canvas", { tabindex: "-1", "aria-label": "the image with objects and detections", role: "img" });
    const text = h("span", {});
    const box = h("figure", { class: "pane" }, h("figcaption", {}, h("i", { class: "swatch",
      style: `background:${probox.line(r)}` }), h("b", {}, store.results[r].name), text), h("div", { class: "stage" }, canvas));
    const pane = { r, canvas, box, text };
    canvas.addEventListener("pointermove", (event) => onMove(pane, event));
    canvas.addEventListener("pointerleave", () => setHover(null));
    canvas.addEventListener("pointerdown", (event) => onDown(pane, event));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      zoomBy(Math.exp(-event.deltaY / 300), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("dblclick", () => { zoom = { scale: 1, x: 0, y: 0 }; probox.repaint(); });
    return pane;
  }

  /** Return how a pane's canvas shows the image: CSS pixels per pixel, left, top. */
  function fit(pane) {
    const stage = pane.canvas.parentElement;
    const width = store.images.w[row], height = store.images.h[row];
    const base = Math.min(stage.clientWidth / width, stage.clientHeight / height);
    const left = (stage.clientWidth - base * width) / 2;
    return { scale: base * zoom.scale, left: left * zoom.scale + zoom.x, top: zoom.y };
  }

  function zoomBy(factor, x, y) {
    const scale = Math.min(Math.max(zoom.scale * factor, 1), 24);
    const change = scale / zoom.scale;
    zoom = scale === 1 ? { scale: 1, x: 0, y: 0 }
      : { scale, x: x - (x - zoom.x) * change, y: y - (y - zoom.y) * change };
    probox.repaint();
  }

  probox.repaint = probox.eachFrame(() => {
    if (row >= 0 && byId("viewer").open) panes.forEach(paint);
  });

  function paint(pane) {
    const state = current();
    const { canvas } = pane;
    const stage = canvas.parentElement;
    const ratio = window.devicePixelRatio || 1;
    const size = [stage.clientWidth, stage.clientHeight];
    canvas.width = Math.max(1, Math.round(size[0] * ratio));
    canvas.height = Math.max(1, Math.round(size[1] * ratio));
    canvas.style.width = `${size[0]}px`;
    canvas.style.height = `${size[1]}px`;
    const context = canvas.getContext("2d");
    const { scale, left, top } = fit(pane);
    const width = store.images.w[row], height = store.images.h[row];
    const layers = new Set(state.layers);
    context.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * left, ratio * top);
    context.fillStyle = probox.css("--ground");
    context.fillRect(0, 0, width, height);
    if (photo && layers.has("p")) {
      context.drawImage(photo, 0, 0, width, height);
      context.fillStyle = "rgba(255,255,255,0.14)";
      context.fillRect(0, 0, width, height);
    }
    if (!geometry) return;
    const view = store.view(pane.r, state.t);
    const focus = focusOf(pane, view);
    context.save();
    context.beginPath();
    context.rect(0, 0, width, height);
    context.clip();
    probox.paintScene(context, geometry, view, pane.r, { zoom: scale, layers, focus, fine: false });
    context.restore();
    if (layers.has("l")) {
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      probox.paintLabels(context, geometry, view, pane.r, (x, y) => [x * scale + left, y * scale + top], size, focus);
    }
  }

  /** Return what is brought out: what is hovered or picked, and its partner. */
  function focusOf(pane, view) {
    const chosen = hover || picked();
    if (!chosen) return null;
    if (chosen.kind === "o") return { object: chosen.row, detection: view.objectDetection[chosen.row] };
    if (chosen.r === pane.r) return { detection: chosen.row, object: view.partner(chosen.row) };
    // In the other pane: the detection of the same object, if there is one.
    const object = store.view(chosen.r, current().t).partner(chosen.row);
    return { object, detection: object < 0 ? -2 : view.objectDetection[object] };
  }

  /** Return what the state picks: "d3" is the third detection of the image, "o2" its second object. */
  function picked() {
    const { pick, main } = current();
    if (!pick || row < 0) return null;
    const number = Number(pick.slice(1));
    const offsets = pick[0] === "o" ? store.objects.offsets : store.results[main].detections.offsets;
    if (!(number >= 0) || offsets[row] + number >= offsets[row + 1]) return null;
    return { kind: pick[0] === "o" ? "o" : "d", r: main, row: offsets[row] + number };
  }

  /** Return the smallest thing under a point. */
  function hit(pane, event) {
    if (!geometry) return null;
    const { scale, left, top } = fit(pane);
    const x = (event.offsetX - left) / scale, y = (event.offsetY - top) / scale;
    const state = current();
    const layers = new Set(state.layers);
    const view = store.view(pane.r, state.t);
    const slack = 4 / scale;
    let best = null, least = Infinity;
    const offer = (area, found) => { if (area < least) { least = area; best = found; } };
    if (layers.has("b") || layers.has("e") || layers.has("h")) {
      for (const d of probox.keptDetections(geometry, view, pane.r)) {
        const [x1, y1, x2, y2] = d.box;
        if (x >= x1 - slack && x <= x2 + 1 + slack && y >= y1 - slack && y <= y2 + 1 + slack) {
          offer((x2 - x1 + 1) * (y2 - y1 + 1), { kind: "d", r: pane.r, row: d.row });
        }
      }
    }
    if (layers.has("m")) {
      for (const o of geometry.objects) {
        if (x < o.x0 || x > o.x1 + 1 || y < o.y0 || y > o.y1 + 1 || !probox.contains(o, x, y)) continue;
        // A matched object and its detection tell the same: prefer the detection there, the object elsewhere.
        const area = (o.x1 - o.x0 + 1) * (o.y1 - o.y0 + 1) * (view.objectDetection[o.row] >= 0 ? 1.5 : 0.7);
        offer(area, { kind: "o", r: pane.r, row: o.row });
      }
    }
    return best;
  }

  const same = (a, b) => (a && b ? a.kind === b.kind && a.row === b.row && a.r === b.r : a === b);

  function setHover(found, event, pane) {
    const changed = !same(found, hover);
    hover = found;
    if (changed) probox.repaint();
    if (found && event) showCard(found, event, pane);
    else byId("card").hidden = true;
  }

  function onMove(pane, event) {
    if (event.buttons && zoom.scale > 1) return;
    if (event.pointerType !== "touch") setHover(hit(pane, event), event, pane);
  }

  function onDown(pane, event) {
    const start = { x: event.clientX, y: event.clientY, zx: zoom.x, zy: zoom.y, moved: false };
    pane.canvas.setPointerCapture(event.pointerId);
    const drag = (next) => {
      const dx = next.clientX - start.x, dy = next.clientY - start.y;
      start.moved ||= Math.hypot(dx, dy) > 4;
      if (zoom.scale > 1 && start.moved) { zoom = { ...zoom, x: start.zx + dx, y: start.zy + dy }; probox.repaint(); }
    };
    const up = (next) => {
      pane.canvas.removeEventListener("pointermove", drag);
      if (start.moved) return;
      const found = hit(pane, next);
      if (next.pointerType === "touch") setHover(found, next, pane);
      const code = found && (found.kind === "o" ? `o${found.row - store.objects.offsets[row]}`
        : found.r === current().main ? `d${found.row - store.results[found.r].detections.offsets[row]}` : null);
      probox.update({ pick: code === current().pick ? null : code });
    };
    pane.canvas.addEventListener("pointermove", drag);
    pane.canvas.addEventListener("pointerup", up, { once: true });
    pane.canvas.addEventListener("pointercancel", () => pane.canvas.removeEventListener("pointermove", drag), { once: true });
  }

  /** Return a description of an object or detection: heading, sentence, qualities. */
  function describe({ kind, r, row: item }) {
    const view = store.view(r, current().t);
    const name = (number) => (number < 0 ? "unknown class" : store.classes[number]);
    const { detections } = view.result;
    const found = kind === "d" ? item : view.objectDetection[item];
    const object = kind === "d" ? view.partner(item) : item;
    const verdict = kind === "d" ? view.verdict[item] : view.objectVerdict[item];
    const said = (d) => `${name(detections.class[d])} ${percent(detections.score[d], 1)}`;
    const there = (o) => `${name(store.objects.class[o])} ${o - store.objects.offsets[row] + 1}`;
    return {
      verdict,
      heading: kind === "d" ? `detection: ${said(item)}` : `object: ${there(item)}`,
      partner: kind === "d" ? (object >= 0 ? `matched with object ${there(object)}` : "matched with no object")
        : found >= 0 ? `matched with detection ${said(found)}` : "matched with no detection",
      qualities: view.qualities(found),
    };
  }

  function card(found) {
    const { verdict, heading, partner, qualities } = describe(found);
    const tone = verdict === TP ? "right" : verdict === IGNORED ? "neutral" : "wrong";
    return [h("b", {}, heading), h("div", { class: tone }, VERDICTS[verdict]), h("div", {}, partner),
      qualities ? h("dl", {}, QUALITIES.map((quality) => [h("dt", {}, quality),
        h("dd", { "data-quality": quality, style: `--share:${qualities[quality]}` }, percent(qualities[quality]))])) : null].filter(Boolean);
  }

  function showCard(found, event, pane) {
    const box = byId("card");
    box.replaceChildren(...card(found));
    box.hidden = false;
    const edge = byId("viewer").getBoundingClientRect();
    const from = pane.canvas.getBoundingClientRect();
    const x = from.left + event.offsetX, y = from.top + event.offsetY;
    const left = x + 18 + box.offsetWidth > edge.right ? x - 18 - box.offsetWidth : x + 18;
    box.style.left = `${Math.max(4, left)}px`;
    box.style.top = `${Math.max(4, Math.min(y + 12, edge.bottom - box.offsetHeight - 8))}px`;
  }

  /** List objects and detections, so that keys and screen readers reach what the pointer does. */
  function list() {
    const state = current();
    if (!geometry) return;
    const view = store.view(state.main, state.t);
    const detections = [...probox.keptDetections(geometry, view, state.main)].reverse();
    const entries = [
      ...detections.map((d) => ({ kind: "d", r: state.main, row: d.row, code: `d${d.row - store.results[state.main].detections.offsets[row]}` })),
      ...geometry.objects.filter((o) => view.objectDetection[o.row] < 0)
        .map((o) => ({ kind: "o", r: state.main, row: o.row, code: `o${o.row - store.objects.offsets[row]}` })),
    ];
    const order = { [TP]: 0, [FN]: 1, [FP]: 2, [IGNORED]: 3 };
    const shown = entries.map((entry) => ({ entry, told: describe(entry) }))
      .filter(({ told }) => told.verdict !== DROPPED)
      .sort((a, b) => order[a.told.verdict] - order[b.told.verdict]);
    byId("items").replaceChildren(...shown.map(({ entry, told }) => h("button", { type: "button",
      class: `item ${told.verdict === TP ? "right" : told.verdict === IGNORED ? "neutral" : "wrong"}`,
      "aria-pressed": String(state.pick === entry.code), "data-code": entry.code,
      onclick: () => probox.update({ pick: state.pick === entry.code ? null : entry.code }),
      onpointerenter: () => { hover = entry; probox.repaint(); },
      onpointerleave: () => { hover = null; probox.repaint(); },
      onfocus: () => { hover = entry; probox.repaint(); },
      onblur: () => { hover = null; probox.repaint(); } },
    h("span", {}, told.heading.replace(/^(detection|object): /, "")),
    h("span", { class: "numbers" }, told.qualities ? `pPDQ ${percent(told.qualities.pPDQ, 1)}` : VERDICTS[told.verdict]))));
    const chosen = picked();
    byId("picked").replaceChildren(...(chosen ? card(chosen) : []));
    byId("picked").hidden = !chosen;
  }

  /** Go to the image that many places on in the gallery's order. */
  function go(step) {
    const order = probox.order || [];
    const place = order.indexOf(row);
    const next = place < 0 ? 0 : Math.min(Math.max(place + step, 0), order.length - 1);
    if (order.length && order[next] !== row) probox.update({ image: store.images.id[order[next]], pick: null });
  }

  probox.onStart((theStore) => {
    store = theStore;
    const dialog = byId("viewer");
    const close = () => {
      const image = current().image;
      probox.update({ image: null, pick: null }, true);
      probox.focusTile(store, current(), image);
    };
    byId("close").addEventListener("click", close);
    dialog.addEventListener("cancel", (event) => { event.preventDefault(); close(); });
    byId("previous").addEventListener("click", () => go(-1));
    byId("next").addEventListener("click", () => go(1));
    byId("link").addEventListener("click", () => probox.copy(location.href, "link"));
    byId("layers").addEventListener("change", () => {
      const on = [...byId("layers").querySelectorAll("input:checked")].map((input) => input.value);
      probox.update({ layers: on.join("") });
    });
    const options = () => store.results.map((result, r) => h("option", { value: String(r) }, result.name));
    byId("shown").append(...options());
    byId("other").append(h("option", { value: "" }, "none"), ...options());
    byId("shown").addEventListener("change", (event) => probox.update({ main: Number(event.target.value), pick: null }));
    byId("other").addEventListener("change", (event) =>
      probox.update({ other: event.target.value === "" ? null : Number(event.target.value) }));
    for (const label of dialog.querySelectorAll(".several")) label.hidden = store.results.length < 2;
    const keys = { ArrowRight: () => go(1), ArrowLeft: () => go(-1), n: () => go(1), p: () => go(-1),
      "+": () => zoomBy(1.4, panes[0].canvas.clientWidth / 2, panes[0].canvas.clientHeight / 2),
      "-": () => zoomBy(1 / 1.4, panes[0].canvas.clientWidth / 2, panes[0].canvas.clientHeight / 2),
      0: () => zoomBy(0, 0, 0),
      c: () => {
        if (store.results.length < 2) return;
        const { main, other } = current();
        probox.update({ other: other === null ? (main + 1) % store.results.length : null });
      } };
    for (const input of byId("layers").querySelectorAll("input")) keys[input.dataset.key] = () => input.click();
    dialog.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("select, input[type=text]")) return;
      if (!(event.key in keys)) return;
      event.preventDefault();
      keys[event.key]();
    });
    new ResizeObserver(() => { arrange(); probox.repaint(); }).observe(byId("panes"));
  });
})();
