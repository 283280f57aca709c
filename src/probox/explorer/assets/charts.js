// Charts: lines and steps as SVG, point clouds on a canvas. Tooltips show the values under the pointer.
const { probox } = window;
const { h, s } = probox;
const { MARGIN, frame, tooltip, shape } = probox.chartParts;

/** Return a series' value at a point, NaN if it is missing. */
const valueAt = (/** @type {Series} */ one, /** @type {number} */ i) => one.y[i] ?? NaN;

/** Return a path through a series, with gaps at missing values. */
function pathOf(/** @type {Series} */ one, /** @type {Frame["x"]} */ x, /** @type {Frame["y"]} */ y) {
  let path = "",
    open = false;
  one.x.forEach((value, i) => {
    if (!Number.isFinite(one.y[i])) {
      open = false;
      return;
    }
    const next = one.step && i + 1 < one.x.length ? ` H ${x(one.x[i + 1])}` : "";
    path += `${open ? "L" : "M"} ${x(value)} ${y(valueAt(one, i))}${next} `;
    open = true;
  });
  return path;
}

/**
 * Return a series' shapes at some of its points, at different points for each detector.
 *
 * @param {Series} one
 * @param {number} mark
 * @param {Frame["x"]} x
 * @param {Frame["y"]} y
 */
function marksOf(one, mark, x, y) {
  const there = Array.from(one.x.keys()).filter(
    (i) => Number.isFinite(one.y[i]) && !(one.step && i + 1 === one.x.length),
  );
  const every = one.marked === "all" ? 1 : Math.max(1, Math.ceil(there.length / 6));
  const middle = (/** @type {number} */ i) => (one.step ? (one.x[i] + one.x[i + 1]) / 2 : one.x[i]);
  return there
    .filter((_, n) => n % every === Math.floor((every * (1 + 2 * (mark % 4))) / 8) % every)
    .map((i) => shape(mark, x(middle(i)), y(valueAt(one, i)), one.colour));
}

/** @type {WeakMap<HTMLElement, { live: HTMLElement; at: number | null }>} */
const kept = new WeakMap(); // by container, kept when a chart is redrawn: the cursor and the text for screen readers
const number = (/** @type {number} */ value) => `${+value.toFixed(3)}`;

/** Return a chart's label with its values at the marker, or else the highest value of each series. */
function labelOf(/** @type {LineOptions} */ options) {
  const { marker = NaN } = options;
  const parts = options.series
    .filter((one) => !one.reference)
    .map((one) => {
      const finite = one.y.map((value, i) => i).filter((i) => Number.isFinite(one.y[i]));
      if (!finite.length) return `${one.name}: none`;
      const at = Number.isFinite(marker)
        ? nearest(one, marker)
        : finite.reduce((best, i) => (valueAt(one, i) > valueAt(one, best) ? i : best));
      const where = Number.isFinite(marker) ? "" : ` at ${number(one.x[at])}`;
      return `${one.name}: ${options.format(valueAt(one, at))}${where}`;
    });
  const which = Number.isFinite(marker) ? `at ${number(marker)}` : "highest";
  return parts.length ? `${options.label}; ${which}: ${parts.join(", ")}` : `${options.label}; nothing to show`;
}

/** Return the index of a series' point at x: the nearest, or the step that contains x. */
function nearest(/** @type {Series} */ one, /** @type {number} */ value) {
  let at = 0;
  one.x.forEach((candidate, i) => {
    const better = one.step
      ? candidate <= value && i + 1 < one.x.length
      : Math.abs(candidate - value) < Math.abs(one.x[at] - value);
    if (better) at = i;
  });
  return at;
}

/**
 * Draw series of points as lines, or as steps; a marker is a vertical line at one x.
 *
 * `yScale: "log"` includes 0. `brush: [lo, hi]` shows the selected range of x, or null. `onBrush(lo, hi)` is called
 * with a new range, `onBrush(null, null)` when it is cleared; both ends are multiples of `brushStep`. `onPick(x)` is
 * called after a click or Enter.
 *
 * A series has a `mark`, a detector's number, for its shape, and `tip(i)` for its own tooltip. A `reference` has no
 * tooltip. `band: [low, high]` and `level` draw a horizontal stripe and line.
 *
 * Keys: arrows move the cross-hair or the range, Shift and arrows resize the range, Escape clears it.
 */
probox.lineChart = (container, options) => {
  const { marker = NaN, level = NaN, onBrush, onPick } = options;
  const focused = container.contains(document.activeElement);
  const own = kept.get(container) || { live: h("div", { class: "offscreen", "aria-live": "polite" }), at: null };
  kept.set(container, own);
  container.replaceChildren();
  const [low, high] = options.yRange || [
    0,
    Math.max(...options.series.flatMap((one) => one.y.map((_, i) => valueAt(one, i)).filter(Number.isFinite)), 1e-9) *
      (options.yScale === "log" ? 1.6 : 1.06),
  ];
  const { svg, x, y, back, height } = frame(container, { ...options, label: labelOf(options), yRange: [low, high] });
  const [first, last] = options.xRange;
  const inside = (/** @type {number} */ value) => Math.min(Math.max(value, first), last);
  if (options.band) {
    const [bottom, top] = options.band.map((value) => y(Math.min(Math.max(value, low), high)));
    svg.append(
      s("rect", {
        class: "band",
        x: MARGIN.left,
        width: x(last) - MARGIN.left,
        y: top,
        height: Math.max(bottom - top, 0),
      }),
    );
  }
  if (Number.isFinite(level)) {
    svg.append(s("line", { class: "reference", x1: x(first), x2: x(last), y1: y(level), y2: y(level) }));
  }
  for (const one of options.series) {
    svg.append(
      s("path", {
        class: one.reference ? "reference" : "line",
        d: pathOf(one, x, y),
        stroke: one.colour || null,
        "stroke-dasharray": one.dash || null,
      }),
    );
  }
  for (const one of options.series) if (one.mark !== undefined) svg.append(...marksOf(one, one.mark, x, y));
  if (Number.isFinite(marker)) {
    svg.append(
      s("line", {
        class: "marker",
        x1: x(marker),
        x2: x(marker),
        y1: MARGIN.top,
        y2: height - MARGIN.bottom,
      }),
    );
  }
  const cross = s("line", { class: "cross", y1: MARGIN.top, y2: height - MARGIN.bottom, visibility: "hidden" });
  svg.append(cross);
  svg.setAttribute("tabindex", "0");
  container.append(svg, own.live);
  const tip = tooltip(container);
  const xs = options.series.length ? options.series[0].x : [];
  /** @type {(at: number) => TipLine[]} */
  const linesAt = (at) => [
    [`${options.xLabel} ${number(xs[at])}`],
    ...options.series
      .filter((one) => !one.reference)
      .map(
        /** @returns {TipLine} */ (one) => {
          const i = one.x === xs || (one.x.length === xs.length && one.x[at] === xs[at]) ? at : nearest(one, xs[at]);
          return [
            one.tip ? `${one.name} ${one.tip(i)}` : `${one.name} ${options.format(valueAt(one, i))}`,
            one.colour,
            one.mark,
          ];
        },
      ),
  ];
  const point = (/** @type {number} */ at, /** @type {number} */ px, /** @type {number} */ py) => {
    cross.setAttribute("x1", String(x(xs[at])));
    cross.setAttribute("x2", String(x(xs[at])));
    cross.setAttribute("visibility", "visible");
    tip.show(px, py, linesAt(at));
  };
  const unpoint = () => {
    tip.hide();
    cross.setAttribute("visibility", "hidden");
  };
  svg.addEventListener("pointermove", (event) => {
    const value = back(event.offsetX);
    if (!xs.length || value < first || value > last) return unpoint();
    point(nearest(options.series[0], value), event.offsetX, event.offsetY);
  });
  svg.addEventListener("pointerleave", unpoint);
  svg.addEventListener("blur", unpoint);

  const brush = onBrush
    ? probox.brushOf(svg, {
        ...options,
        onBrush,
        x,
        back,
        top: MARGIN.top,
        bottom: height - MARGIN.bottom,
        cursor: () => (own.at === null ? null : xs[own.at]),
      })
    : null;
  if (onPick) {
    svg.classList.add("pickable");
    svg.addEventListener("click", (event) => {
      if (!brush || !brush.clicked()) onPick(inside(back(event.offsetX)));
    });
  }
  const hints = [
    xs.length && "arrow keys move the cursor",
    onBrush && "Shift and arrow keys select a range, Escape clears it",
    onPick && "Enter sets the threshold",
  ].filter(Boolean);
  svg.setAttribute("aria-description", hints.join("; "));
  svg.addEventListener("keydown", (event) => {
    const steps = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    const words = brush && brush.key(event);
    if (words) {
      event.preventDefault();
      event.stopPropagation();
      own.live.textContent = words;
      return;
    }
    if (probox.isCommand(event) || !xs.length) return;
    if (event.key === "Enter" && onPick && own.at !== null) {
      onPick(inside(xs[Math.min(own.at, xs.length - 1)]));
      return;
    }
    if (!steps && event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    event.stopPropagation();
    const from = own.at ?? nearest(options.series[0], Number.isFinite(marker) ? marker : first);
    const by = steps * Math.max(1, Math.round(xs.length / 50));
    own.at =
      event.key === "Home"
        ? 0
        : event.key === "End"
          ? xs.length - 1
          : Math.min(Math.max(own.at === null ? from : from + by, 0), xs.length - 1);
    point(own.at, x(xs[own.at]), MARGIN.top + 60);
    own.live.textContent = linesAt(own.at)
      .map(([text]) => text)
      .join(", ");
  });
  if (focused) svg.focus({ preventScroll: true });
};

/**
 * Draw point clouds; a click on a point calls `onPick(series, index)`.
 *
 * `xRange` and `yRange` default to 0 .. 1. `lines` are series drawn over the points, `format` formats values.
 */
probox.cloudChart = (container, options) => {
  container.replaceChildren();
  const format = options.format || probox.percent;
  const middle = (/** @type {CloudSeries["x"]} */ values) =>
    format(Array.from(values).reduce((sum, value) => sum + value, 0) / values.length);
  const points = options.series.map(
    (one) =>
      `${one.name}: ${
        one.x.length ? `${probox.count(one.x.length)}, mean x ${middle(one.x)}, mean y ${middle(one.y)}` : "no points"
      }`,
  );
  const { svg, x, y, width, height } = frame(container, {
    xRange: [0, 1],
    yRange: [0, 1],
    ...options,
    label: `${options.label}; points of ${points.join("; ")}`,
  });
  const ratio = window.devicePixelRatio || 1;
  const canvas = h("canvas", {
    width: width * ratio,
    height: height * ratio,
    class: "cloud",
    style: `width:${width}px;height:${height}px`,
  });
  const context = probox.drawing(canvas);
  context.scale(ratio, ratio);
  const words = [];
  if (options.levels) {
    for (const level of probox.constants.LEVELS) {
      let path = "";
      for (let q = level * level; q <= 1.0001; q += 0.01)
        path += `${path ? "L" : "M"} ${x(q)} ${y((level * level) / q)} `;
      svg.append(s("path", { class: "level", d: path }));
      words.push(
        s(
          "text",
          { class: "level", x: x(1) - 6, y: y(level * level) - 6, "text-anchor": "end" },
          `pPDQ ${100 * level}`,
        ),
      );
    }
  }
  const total = options.series.reduce((sum, one) => sum + one.x.length, 0);
  context.globalAlpha = Math.min(options.lines ? 0.35 : 0.7, Math.max(0.12, 30 / Math.sqrt(total + 1)));
  for (const one of options.series) {
    context.fillStyle = one.colour;
    for (let i = 0; i < one.x.length; i++) {
      if (total > 4000) {
        // squares are ten times faster to draw than circles
        context.fillRect(x(one.x[i]) - 1.5, y(one.y[i]) - 1.5, 3, 3);
        continue;
      }
      context.beginPath();
      context.arc(x(one.x[i]), y(one.y[i]), 2.6, 0, 7);
      context.fill();
    }
  }
  const ring = s("circle", { class: "ring", r: 6, visibility: "hidden" });
  const lines = (options.lines || []).map((one) => [
    one.reference ? null : s("path", { class: "halo", d: pathOf(one, x, y) }),
    s("path", {
      class: one.reference ? "reference" : "line over-points",
      d: pathOf(one, x, y),
      stroke: one.colour || null,
    }),
    one.mark === undefined ? null : marksOf(one, one.mark, x, y),
  ]);
  const over = s("svg", { width, height, class: "over" }, words, lines, ring);
  container.append(svg, canvas, over);
  const tip = tooltip(container);
  const nearest = (/** @type {MouseEvent} */ event) => {
    /** @type {{ one: CloudSeries; i: number } | null} */
    let best = null;
    let distance = 100;
    for (const one of options.series) {
      for (let i = 0; i < one.x.length; i++) {
        const away = (x(one.x[i]) - event.offsetX) ** 2 + (y(one.y[i]) - event.offsetY) ** 2;
        if (away < distance) {
          best = { one, i };
          distance = away;
        }
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
    ring.setAttribute("cx", String(x(one.x[i])));
    ring.setAttribute("cy", String(y(one.y[i])));
    tip.show(event.offsetX, event.offsetY, [
      [one.name, one.colour, one.mark],
      [`${options.xLabel} ${format(one.x[i])}`],
      [`${options.yLabel} ${format(one.y[i])}`],
      ["click to open the image"],
    ]);
  });
  over.addEventListener("pointerleave", () => {
    tip.hide();
    ring.setAttribute("visibility", "hidden");
  });
  over.addEventListener("click", (event) => {
    const best = nearest(event);
    if (best) options.onPick(best.one, best.i);
  });
};
