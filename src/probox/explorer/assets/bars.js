// Horizontal bars: grouped, and stacked. Parts differ by pattern and colour.
const { probox } = window;
const { s } = probox;
const { shape } = probox.chartParts;
const BAR = 18,
  LETTER = 6.8;

const textOf = (/** @type {BarOptions} */ options) =>
  options.groups
    .map(
      (group, g) =>
        `${group}: ${
          options.series
            .filter((one) => Number.isFinite(one.values[g]))
            .map((one) => `${one.name} ${options.format(one.values[g], g, one)}`)
            .join(", ") || "none"
        }`,
    )
    .join("; ");

/**
 * Draw groups of horizontal bars, one per series.
 *
 * The name of a group is left of its bars, or `above` them. `format(value, g, series)` formats a value; `high` is the
 * end of the axis, by default the largest value.
 */
probox.barChart = (container, options) => {
  container.replaceChildren();
  const width = Math.max(probox.widthOf(container), 240);
  const { above = false } = options;
  const title = above ? 18 : 0,
    gap = above ? 10 : 14,
    left = above ? 16 : 76;
  const one = title + options.series.length * BAR + gap;
  const height = options.groups.length * one + 8;
  const high =
    options.high || Math.max(...options.series.flatMap((series) => series.values.filter(Number.isFinite)), 1e-9);
  const svg = s("svg", { width, height, role: "img", "aria-label": `${options.label}; ${textOf(options)}` });
  const texts = options.series.flatMap((series) =>
    series.values.map((value, g) => (Number.isFinite(value) ? options.format(value, g, series) : "–")),
  );
  const room = width - left - 12 - LETTER * Math.max(...texts.map((text) => text.length), 1);
  options.groups.forEach((name, g) => {
    const top = g * one + 4 + title;
    svg.append(
      above
        ? s("text", { class: "group", x: 0, y: top - 5 }, name)
        : s("text", { x: left - 10, y: top + (options.series.length * BAR) / 2 + 4, "text-anchor": "end" }, name),
    );
    options.series.forEach((series, n) => {
      const value = series.values[g];
      if (series.mark !== undefined && above)
        svg.append(shape(series.mark, 6, top + n * BAR + BAR / 2 - 0.5, series.colour));
      const length = Number.isFinite(value) ? (value / high) * room : 0;
      svg.append(
        s("rect", {
          x: left,
          y: top + n * BAR + 1,
          width: Math.max(length, 1),
          height: BAR - 3,
          rx: 3,
          fill: series.colour,
        }),
        s(
          "text",
          { x: left + length + 7, y: top + n * BAR + BAR / 2 + 4 },
          Number.isFinite(value) ? options.format(value, g, series) : "–",
        ),
      );
    });
  });
  container.append(svg);
};

// Patterns of lines or dots in the background colour.
const PATTERNS = [
  [],
  ["M -2 2 L 2 -2 M 0 8 L 8 0 M 6 10 L 10 6"],
  ["M -2 6 L 2 10 M 0 0 L 8 8 M 6 -2 L 10 2"],
  ["M 1 2 h 2 M 5 6 h 2"],
  ["M 0 4 H 8"],
  ["M 4 0 V 8"],
];
let made = 0;

/**
 * @param {number} number
 * @param {string} colour
 * @param {string} ground
 * @param {string} id
 */
function patternOf(number, colour, ground, id) {
  return s(
    "pattern",
    { id, width: 8, height: 8, patternUnits: "userSpaceOnUse" },
    s("rect", { width: 8, height: 8, fill: colour }),
    PATTERNS[number % PATTERNS.length].map((d) =>
      s("path", { d, stroke: ground, "stroke-width": 1.6, "stroke-opacity": 0.75, fill: "none" }),
    ),
  );
}

/** Return the symbol of a part for legends. */
probox.partSwatch = (part, number) => {
  const id = `part-${made++}`;
  return s(
    "svg",
    { class: "glyph", width: 16, height: 12, "aria-hidden": "true" },
    s("defs", patternOf(number, part.colour, probox.css("--panel"), id)),
    s("rect", { width: 16, height: 12, rx: 2, fill: `url(#${id})` }),
  );
};

/**
 * Draw a stacked bar of length 1 for each row.
 *
 * `parts` are { name, colour }, a row is { name, colour, mark, values, note }. Wide parts contain their value.
 */
probox.partsChart = (container, options) => {
  container.replaceChildren();
  const width = Math.max(probox.widthOf(container), 240),
    bar = 24,
    title = 19,
    gap = 12;
  const height = options.rows.length * (bar + title + gap);
  const { parts } = options;
  const texts = options.rows.map(
    ({ name, values }) =>
      `${name}: ${
        values ? parts.map((part, p) => `${part.name} ${options.format(values[p])}`).join(", ") : "nothing to score"
      }`,
  );
  const svg = s("svg", { width, height, role: "img", "aria-label": `${options.label}; ${texts.join("; ")}` });
  const ids = parts.map(() => `part-${made++}`);
  svg.append(
    s(
      "defs",
      parts.map((part, p) => patternOf(p, part.colour, probox.css("--panel"), ids[p])),
    ),
  );
  const tip = probox.chartParts.tooltip(container);
  options.rows.forEach((row, n) => {
    const top = n * (bar + title + gap) + title;
    svg.append(
      shape(row.mark, 6, top - 10, row.colour),
      s("text", { class: "group", x: 16, y: top - 6 }, probox.shortName(row.name, Math.floor((width - 100) / 8))),
      s("text", { class: "axis", x: width, y: top - 6, "text-anchor": "end" }, row.note),
    );
    let from = 0;
    (row.values || []).forEach((value, p) => {
      if (!(value > 0)) return;
      const length = value * width;
      const one = s("rect", {
        class: "part",
        "data-part": parts[p].key,
        x: from,
        y: top,
        width: length,
        height: bar,
        fill: `url(#${ids[p]})`,
      });
      one.addEventListener("pointermove", (event) =>
        tip.show(event.offsetX, event.offsetY, [
          [row.name],
          [`${parts[p].name} ${options.format(value)} points`, parts[p].colour],
        ]),
      );
      one.addEventListener("pointerleave", () => tip.hide());
      svg.append(one);
      if (length >= 38)
        svg.append(
          s(
            "text",
            { class: "inside", x: from + length / 2, y: top + bar / 2 + 4.5, "text-anchor": "middle" },
            options.format(value),
          ),
        );
      from += length;
    });
  });
  container.prepend(svg);
};
