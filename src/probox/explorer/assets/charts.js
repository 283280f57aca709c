// Charts: lines, steps and bars as SVG, clouds of points on a canvas; all tell their values under the pointer.
"use strict";
(() => {
  const probox = (window.probox = window.probox || {});
  const { h, s } = probox;
  const MARGIN = { left: 48, right: 14, top: 10, bottom: 40 };

  /** Return about n round values from low to high. */
  function ticks(low, high, n) {
    const rough = (high - low) / Math.max(n, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((value) => value >= rough * 0.999);
    const values = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high * (1 + 1e-9); k++) values.push(k * step);
    return values;
  }

  const short = (value) => (Math.abs(value) >= 10000 ? `${value / 1000}k` : `${+value.toPrecision(6)}`);
  const shorter = (value) => (value >= 1e6 ? `${value / 1e6}M` : value >= 1000 ? `${value / 1000}k` : `${value}`);

  /** Where a value lies along an axis, which values are marked there, and how. */
  const SCALES = {
    linear: { place: (value) => value, ticks, word: short },
    // Logarithms from 1 on; half a decade below, so that 0 has a place of its own.
    log: {
      place: (value) => (value > 1 ? 0.5 + Math.log10(value) : value / 2),
      ticks: (low, high, n) => {
        const powers = Math.floor(Math.log10(Math.max(high, 1)) + 1e-9) + 1;
        const every = Math.max(1, Math.ceil(powers / (n + 1)));
        const values = [0];
        for (let k = 0; k < powers; k += every) values.push(10 ** k);
        return values.filter((value) => value >= low && value <= high);
      },
      word: shorter,
    },
  };

  /** Draw axes into a new SVG of the container's size; return it with its scales. */
  function frame(container, options) {
    const width = Math.max(probox.widthOf(container), 240), height = options.height || 260;
    const [x0, x1] = options.xRange, [y0, y1] = options.yRange;
    const scale = SCALES[options.yScale || "linear"];
    const [p0, p1] = [scale.place(y0), scale.place(y1)];
    const x = (value) => MARGIN.left + ((value - x0) / (x1 - x0)) * (width - MARGIN.left - MARGIN.right);
    const y = (value) => height - MARGIN.bottom - ((scale.place(value) - p0) / (p1 - p0)) * (height - MARGIN.top - MARGIN.bottom);
    const svg = s("svg", { width, height, role: "img", "aria-label": options.label });
    for (const value of scale.ticks(y0, y1, 5)) {
      svg.append(
        s("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) }),
        s("text", { class: "tick", x: MARGIN.left - 8, y: y(value) + 4, "text-anchor": "end" }, scale.word(value)));
    }
    for (const value of ticks(x0, x1, width < 360 ? 4 : 5)) {
      svg.append(
        s("line", { class: "grid", x1: x(value), x2: x(value), y1: MARGIN.top, y2: height - MARGIN.bottom }),
        s("text", { x: x(value), y: height - MARGIN.bottom + 18, "text-anchor": "middle" }, short(value)));
    }
    svg.append(
      s("text", { class: "axis", x: width - MARGIN.right, y: height - 6, "text-anchor": "end" }, options.xLabel),
      s("text", { class: "axis", x: 12, y: MARGIN.top, "text-anchor": "end", transform: `rotate(-90 12 ${MARGIN.top})` },
        options.yLabel));
    const back = (px) => x0 + ((px - MARGIN.left) / (width - MARGIN.left - MARGIN.right)) * (x1 - x0);
    return { svg, x, y, back, width, height };
  }

  function tooltip(container) {
    const box = h("div", { class: "tip", hidden: true });
    container.append(box);
    return {
      show(px, py, lines) {
        box.replaceChildren(...lines.map(([text, colour]) =>
          h("div", {}, colour ? h("i", { class: "swatch", style: `background:${colour}` }) : null, text)));
        box.hidden = false;
        const room = container.clientWidth - box.offsetWidth;
        box.style.left = `${Math.max(0, Math.min(px + 12, room))}px`;
        box.style.top = `${Math.max(0, py - box.offsetHeight - 8)}px`;
      },
      hide() { box.hidden = true; },
    };
  }

  /** Return a path through a series, broken where it has no value. */
  function pathOf(one, x, y) {
    let path = "", open = false;
    one.x.forEach((value, i) => {
      if (!Number.isFinite(one.y[i])) { open = false; return; }
      const next = one.step && i + 1 < one.x.length ? ` H ${x(one.x[i + 1])}` : "";
      path += `${open ? "L" : "M"} ${x(value)} ${y(one.y[i])}${next} `;
      open = true;
    });
    return path;
  }

  const kept = new WeakMap(); // by container: what outlasts a redraw, the place of the keys and words for screen readers
  const number = (value) => `${+value.toFixed(3)}`;

  /** Return a chart's label with its main numbers: those at the marker, else the highest of each series. */
  function told(options) {
    const parts = options.series.map((one) => {
      const finite = one.y.map((value, i) => i).filter((i) => Number.isFinite(one.y[i]));
      if (!finite.length) return `${one.name}: none`;
      const at = Number.isFinite(options.marker) ? nearest(one, options.marker)
        : finite.reduce((best, i) => (one.y[i] > one.y[best] ? i : best));
      const where = Number.isFinite(options.marker) ? "" : ` at ${number(one.x[at])}`;
      return `${one.name}: ${options.format(one.y[at])}${where}`;
    });
    const which = Number.isFinite(options.marker) ? `at ${number(options.marker)}` : "highest";
    return parts.length ? `${options.label}; ${which}: ${parts.join(", ")}` : `${options.label}; nothing to show`;
  }

  /** Return which of a series' points one means at x: the nearest, or the step that x lies on. */
  function nearest(one, value) {
    let at = 0;
    one.x.forEach((candidate, i) => {
      const better = one.step ? candidate <= value && i + 1 < one.x.length
        : Math.abs(candidate - value) < Math.abs(one.x[at] - value);
      if (better) at = i;
    });
    return at;
  }

  /**
   * Draw series of points as lines, or as steps; a marker is a vertical line at one x.
   *
   * `yScale: "log"` has a decade per step and a place for 0. `brush: [lo, hi]` shows a chosen range of x, or null;
   * `onBrush(lo, hi)` is told the range that was dragged or chosen with the keys, `onBrush(null, null)` that it was
   * cleared; both ends lie on multiples of `brushStep`. `onPick(x)` is told where one clicked or pressed Enter.
   *
   * Keys: the arrows move the cross-hair, or the range where there is one; Shift and the arrows widen and narrow
   * it; Escape clears it.
   */
  probox.lineChart = (container, options) => {
    const focused = container.contains(document.activeElement);
    const own = kept.get(container) || { live: h("div", { class: "offscreen", "aria-live": "polite" }), at: null };
    kept.set(container, own);
    container.replaceChildren();
    const [low, high] = options.yRange
      || [0, Math.max(...options.series.flatMap((one) => one.y.filter(Number.isFinite)), 1e-9) * (options.yScale === "log" ? 1.6 : 1.06)];
    const { svg, x, y, back, height } = frame(container, { ...options, label: told(options), yRange: [low, high] });
    const [first, last] = options.xRange;
    const inside = (value) => Math.min(Math.max(value, first), last);
    for (const one of options.series) {
      svg.append(s("path", { class: "line", d: pathOf(one, x, y), stroke: one.colour, "stroke-dasharray": one.dash || null }));
    }
    if (Number.isFinite(options.marker)) {
      svg.append(s("line", { class: "marker", x1: x(options.marker), x2: x(options.marker), y1: MARGIN.top,
        y2: height - MARGIN.bottom }));
    }
    const cross = s("line", { class: "cross", y1: MARGIN.top, y2: height - MARGIN.bottom, visibility: "hidden" });
    svg.append(cross);
    svg.setAttribute("tabindex", "0");
    container.append(svg, own.live);
    const tip = tooltip(container);
    const xs = options.series.length ? options.series[0].x : [];
    const linesAt = (at) => [[`${options.xLabel} ${number(xs[at])}`],
      ...options.series.map((one) => [`${one.name} ${options.format(one.y[at])}`, one.colour])];
    const point = (at, px, py) => {
      cross.setAttribute("x1", x(xs[at]));
      cross.setAttribute("x2", x(xs[at]));
      cross.setAttribute("visibility", "visible");
      tip.show(px, py, linesAt(at));
    };
    const unpoint = () => { tip.hide(); cross.setAttribute("visibility", "hidden"); };
    svg.addEventListener("pointermove", (event) => {
      const value = back(event.offsetX);
      if (!xs.length || value < first || value > last) return unpoint();
      point(nearest(options.series[0], value), event.offsetX, event.offsetY);
    });
    svg.addEventListener("pointerleave", unpoint);
    svg.addEventListener("blur", unpoint);

    const brush = options.onBrush ? probox.brushOf(svg, { ...options, x, back, top: MARGIN.top, bottom: height - MARGIN.bottom,
      cursor: () => (own.at === null ? null : xs[own.at]) }) : null;
    if (options.onPick) {
      svg.classList.add("pickable");
      svg.addEventListener("click", (event) => {
        if (!brush || !brush.clicked()) options.onPick(inside(back(event.offsetX)));
      });
    }
    const hints = [xs.length && "arrow keys read values", options.onBrush && "Shift and arrow keys choose a range, Escape clears it",
      options.onPick && "Enter sets the threshold"].filter(Boolean);
    svg.setAttribute("aria-description", hints.join("; "));
    svg.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const words = brush && brush.key(event);
      if (words) {
        event.preventDefault();
        event.stopPropagation();
        own.live.textContent = words;
        return;
      }
      if (event.altKey || event.ctrlKey || event.metaKey || !xs.length) return;
      if (event.key === "Enter" && options.onPick && own.at !== null) { options.onPick(inside(xs[Math.min(own.at, xs.length - 1)])); return; }
      if (!steps && event.key !== "Home" && event.key !== "End") return;
      event.preventDefault();
      event.stopPropagation();
      const from = own.at ?? nearest(options.series[0], Number.isFinite(options.marker) ? options.marker : first);
      const by = steps * Math.max(1, Math.round(xs.length / 50));
      own.at = event.key === "Home" ? 0 : event.key === "End" ? xs.length - 1
        : Math.min(Math.max(own.at === null ? from : from + by, 0), xs.length - 1);
      point(own.at, x(xs[own.at]), MARGIN.top + 60);
      own.live.textContent = linesAt(own.at).map(([text]) => text).join(", ");
    });
    if (focused) svg.focus({ preventScroll: true });
  };

  /** Draw clouds of points; a click on a point hands it over. */
  probox.cloudChart = (container, options) => {
    container.replaceChildren();
    const { svg, x, y, width, height } = frame(container, { ...options, xRange: [0, 1], yRange: [0, 1] });
    const ratio = window.devicePixelRatio || 1;
    const canvas = h("canvas", { width: width * ratio, height: height * ratio, class: "cloud",
      style: `width:${width}px;height:${height}px` });
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const words = [];
    if (options.levels) {
      for (const level of probox.constants.LEVELS) {
        let path = "";
        for (let q = level * level; q <= 1.0001; q += 0.01) path += `${path ? "L" : "M"} ${x(q)} ${y(level * level / q)} `;
        svg.append(s("path", { class: "level", d: path }));
        words.push(s("text", { class: "level", x: x(1) - 6, y: y(level * level) - 6, "text-anchor": "end" }, `pPDQ ${100 * level}`));
      }
    }
    const total = options.series.reduce((sum, one) => sum + one.x.length, 0);
    context.globalAlpha = Math.min(0.7, Math.max(0.12, 30 / Math.sqrt(total + 1)));
    for (const one of options.series) {
      context.fillStyle = one.colour;
      for (let i = 0; i < one.x.length; i++) {
        if (total > 4000) { // squares are drawn ten times as fast
          context.fillRect(x(one.x[i]) - 1.5, y(one.y[i]) - 1.5, 3, 3);
          continue;
        }
        context.beginPath();
        context.arc(x(one.x[i]), y(one.y[i]), 2.6, 0, 7);
        context.fill();
      }
    }
    const ring = s("circle", { class: "ring", r: 6, visibility: "hidden" });
    const over = s("svg", { width, height, class: "over" }, words, ring);
    container.append(svg, canvas, over);
    const tip = tooltip(container);
    const nearest = (event) => {
      let best = null, distance = 100;
      for (const one of options.series) {
        for (let i = 0; i < one.x.length; i++) {
          const away = (x(one.x[i]) - event.offsetX) ** 2 + (y(one.y[i]) - event.offsetY) ** 2;
          if (away < distance) { best = { one, i }; distance = away; }
        }
      }
      return best;
    };
    over.addEventListener("pointermove", (event) => {
      const best = nearest(event);
      over.classList.toggle("pickable", Boolean(best));
      ring.setAttribute("visibility", best ? "visible" : "hidden");
      if (!best) return tip.hide();
      const { one, i } = best;
      ring.setAttribute("cx", x(one.x[i]));
      ring.setAttribute("cy", y(one.y[i]));
      tip.show(event.offsetX, event.offsetY, [[one.name, one.colour],
        [`${options.xLabel} ${probox.percent(one.x[i])}`], [`${options.yLabel} ${probox.percent(one.y[i])}`],
        ["click: see the image"]]);
    });
    over.addEventListener("pointerleave", () => { tip.hide(); ring.setAttribute("visibility", "hidden"); });
    over.addEventListener("click", (event) => {
      const best = nearest(event);
      if (best) options.onPick(best.one, best.i);
    });
  };

  /** Draw groups of horizontal bars. */
  probox.barChart = (container, options) => {
    container.replaceChildren();
    const width = Math.max(probox.widthOf(container), 240);
    const bar = 18, gap = 14, left = 76;
    const height = options.groups.length * (options.series.length * bar + gap) + 8;
    const high = Math.max(...options.series.flatMap((one) => one.values.filter(Number.isFinite)), 1e-9);
    const svg = s("svg", { width, height, role: "img", "aria-label": options.label });
    options.groups.forEach((name, g) => {
      const top = g * (options.series.length * bar + gap) + 4;
      svg.append(s("text", { x: left - 10, y: top + (options.series.length * bar) / 2 + 4, "text-anchor": "end" }, name));
      options.series.forEach((one, n) => {
        const value = one.values[g];
        const length = Number.isFinite(value) ? (value / high) * (width - left - 64) : 0;
        svg.append(
          s("rect", { x: left, y: top + n * bar + 1, width: Math.max(length, 1), height: bar - 3, rx: 3, fill: one.colour }),
          s("text", { x: left + length + 7, y: top + n * bar + bar / 2 + 4 }, options.format(value)));
      });
    });
    container.append(svg);
  };
})();
