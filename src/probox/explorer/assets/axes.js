// Shared parts of charts: axes with scales, shapes of detectors, the tooltip.
const { probox } = window;
const { h, s } = probox;
const MARGIN = { left: 48, right: 14, top: 10, bottom: 40 };

/** Return about n round values from low to high. */
function ticks(/** @type {number} */ low, /** @type {number} */ high, /** @type {number} */ n) {
  const rough = (high - low) / Math.max(n, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  // Ten times the power is more than the rough step.
  const step = [1, 2, 5].map((m) => m * power).find((value) => value >= rough * 0.999) ?? 10 * power;
  const values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high * (1 + 1e-9); k++) values.push(k * step);
  return values;
}

const short = (/** @type {number} */ value) =>
  Math.abs(value) >= 10000 ? `${value / 1000}k` : `${+value.toPrecision(6)}`;
const shorter = (/** @type {number} */ value) =>
  value >= 1e6 ? `${value / 1e6}M` : value >= 1000 ? `${value / 1000}k` : `${value}`;

/**
 * Scales: the position of a value along an axis, the ticks, and their text.
 *
 * @type {Record<Scale, { place(value: number): number; ticks: typeof ticks; word(value: number): string }>}
 */
const SCALES = {
  linear: { place: (value) => value, ticks, word: short },
  // Logarithmic from 1 on, with half a decade below for 0.
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
  // Logarithmic, for values above 0.
  decades: {
    place: Math.log10,
    ticks: (low, high, n) => {
      const values = [];
      const few = Math.log10(high / low) < n / 2;
      for (let k = Math.floor(Math.log10(low)); 10 ** k <= high; k++) {
        for (const m of few ? [1, 2, 5] : [1]) values.push(m * 10 ** k);
      }
      return values.filter((value) => value >= low * 0.999 && value <= high * 1.001);
    },
    word: short,
  },
};

/**
 * Draw axes into a new SVG of the container's size; return it with its scales.
 *
 * @type {(container: HTMLElement, options: ChartOptions) => Frame}
 */
function frame(container, options) {
  const width = Math.max(probox.widthOf(container), 240),
    height = options.height || 260;
  const [x0, x1] = options.xRange,
    [y0, y1] = options.yRange;
  const across = SCALES[options.xScale || "linear"],
    up = SCALES[options.yScale || "linear"];
  const [a0, a1, p0, p1] = [across.place(x0), across.place(x1), up.place(y0), up.place(y1)];
  const x = (/** @type {number} */ value) =>
    MARGIN.left + ((across.place(value) - a0) / (a1 - a0)) * (width - MARGIN.left - MARGIN.right);
  const y = (/** @type {number} */ value) =>
    height - MARGIN.bottom - ((up.place(value) - p0) / (p1 - p0)) * (height - MARGIN.top - MARGIN.bottom);
  const svg = s("svg", { width, height, role: "img", "aria-label": options.label });
  for (const value of up.ticks(y0, y1, 5)) {
    svg.append(
      s("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) }),
      s("text", { class: "tick", x: MARGIN.left - 8, y: y(value) + 4, "text-anchor": "end" }, up.word(value)),
    );
  }
  for (const value of across.ticks(x0, x1, width < 360 ? 4 : 5)) {
    svg.append(
      s("line", { class: "grid", x1: x(value), x2: x(value), y1: MARGIN.top, y2: height - MARGIN.bottom }),
      s("text", { x: x(value), y: height - MARGIN.bottom + 18, "text-anchor": "middle" }, across.word(value)),
    );
  }
  svg.append(
    s("text", { class: "axis", x: width - MARGIN.right, y: height - 6, "text-anchor": "end" }, options.xLabel),
    s(
      "text",
      { class: "axis", x: 12, y: MARGIN.top, "text-anchor": "end", transform: `rotate(-90 12 ${MARGIN.top})` },
      options.yLabel,
    ),
  );
  const back = (/** @type {number} */ px) =>
    x0 + ((px - MARGIN.left) / (width - MARGIN.left - MARGIN.right)) * (x1 - x0);
  return { svg, x, y, back, width, height };
}

// Shapes in addition to colours, for readers with a colour vision deficiency.
const SHAPES = [
  "M -4 0 A 4 4 0 1 1 4 0 A 4 4 0 1 1 -4 0 Z", // a disc
  "M -3.5 -3.5 H 3.5 V 3.5 H -3.5 Z", // a square
  "M 0 -4.6 L 4.4 3.6 H -4.4 Z", // a triangle
  "M 0 -5 L 4.2 0 L 0 5 L -4.2 0 Z", // a diamond
  "M 0 4.6 L 4.4 -3.6 H -4.4 Z", // a triangle on its tip
  "M -1.5 -4.5 H 1.5 V -1.5 H 4.5 V 1.5 H 1.5 V 4.5 H -1.5 V 1.5 H -4.5 V -1.5 H -1.5 Z", // a plus
  "M -4.6 0 L -2.3 -4 H 2.3 L 4.6 0 L 2.3 4 H -2.3 Z", // a hexagon
  "M 0 -5 L 4.8 -1.5 L 3 4 H -3 L -4.8 -1.5 Z", // a pentagon
];

/** Return a detector's shape, drawn at x, y. */
const shape = (
  /** @type {number} */ mark,
  /** @type {number} */ x,
  /** @type {number} */ y,
  /** @type {string | undefined} */ colour,
) => s("path", { class: "mark", d: SHAPES[mark % SHAPES.length], fill: colour, transform: `translate(${x} ${y})` });

/** Return a detector's name, colour and shape for charts. */
probox.named = (r) => ({ name: probox.store.results[r].name, colour: probox.lineColour(r), mark: r, r });

/** Return all detectors with their colours and shapes. */
probox.legend = (store) => store.results.map(({ name }, r) => h("span", probox.glyph(probox.line(r), r), name));

/** Return the symbol of a legend entry: a colour and, with a number, a shape. */
probox.glyph = (colour, mark) =>
  mark === undefined
    ? h("i", { class: "swatch", style: `background:${colour}` })
    : s(
        "svg",
        { class: "glyph", width: 20, height: 12, "aria-hidden": "true" },
        s("path", { d: "M 0 6 H 20", stroke: colour, "stroke-width": 2 }),
        shape(mark, 10, 6, colour),
      );

/**
 * @param {HTMLElement} container
 * @returns {Tip}
 */
function tooltip(container) {
  const box = h("div", { class: "tip", hidden: true });
  container.append(box);
  return {
    show(px, py, lines) {
      box.replaceChildren(...lines.map(([text, colour, mark]) => h("div", colour && probox.glyph(colour, mark), text)));
      box.hidden = false;
      const room = container.clientWidth - box.offsetWidth;
      box.style.left = `${Math.max(0, Math.min(px + 12, room))}px`;
      box.style.top = `${Math.max(0, py - box.offsetHeight - 8)}px`;
    },
    hide() {
      box.hidden = true;
    },
  };
}

probox.chartParts = { MARGIN, frame, tooltip, shape };
