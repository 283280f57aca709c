// P(x), the probability that a pixel belongs to a detected object, from box and corner covariances under the result's
// convention. The equations are those of probox.measures.pdq.definition.
const { probox } = window;
const { EDGE } = probox.constants;
// Standard deviations after which a normal distribution is cut off: its tail, 1e-19, is below the precision of any
// probability.
const FAR = 9;

/** The standard normal distribution function in double precision. */
function cumulative(/** @type {number} */ z) {
  const x = Math.abs(z);
  if (x > 38) return z > 0 ? 1 : 0;
  const density = Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI);
  if (x < 2.5) {
    // near 0: z + z^3 / 3 + z^5 / (3 * 5) + ...
    let term = z,
      sum = z;
    for (let k = 3; Math.abs(term) > 1e-17 * Math.abs(sum); k += 2) sum += term *= (z * z) / k;
    return 0.5 + density * sum;
  }
  let fraction = 0; // tails: 1 / (x + 1 / (x + 2 / (x + 3 / ...)))
  for (let k = 120; k > 0; k--) fraction = k / (x + fraction);
  const tail = density / (x + fraction);
  return z > 0 ? 1 - tail : tail;
}

// Nodes and weights of Gauss and Legendre between -1 and 1, the positive half.
const NODES = [
  [0.1834346424956498, 0.362683783378362],
  [0.525532409916329, 0.3137066458778873],
  [0.7966664774136267, 0.2223810344533745],
  [0.9602898564975363, 0.1012285362903763],
];

/** Return Pr(X <= h, Y <= k) minus Pr(X <= h) Pr(Y <= k) of standard normal variables (Plackett's integral). */
function together(/** @type {number} */ h, /** @type {number} */ k, /** @type {number} */ correlation) {
  const end = Math.asin(Math.abs(correlation)),
    sign = Math.sign(correlation);
  let sum = 0;
  // The integrand is steep near a right angle, so each part is half as long as the previous one.
  for (let from = 0; from < end;) {
    const to = Math.min(end, (from + Math.PI / 2) / 2);
    const middle = (from + to) / 2,
      half = (to - from) / 2;
    for (const [node, weight] of NODES) {
      for (const angle of [middle - half * node, middle + half * node]) {
        const sine = sign * Math.sin(angle),
          cosine = Math.cos(angle);
        sum += weight * half * Math.exp((-0.5 * (h * h + k * k - 2 * h * k * sine)) / (cosine * cosine));
      }
    }
    from = to;
  }
  return (sign * sum) / (2 * Math.PI);
}

/**
 * Return Pr(X <= x, Y <= y) of a Gaussian corner at the edges `xs` and `ys` of pixels, row by row.
 *
 * @param {number[]} xs
 * @param {number[]} ys
 * @param {Point} mean
 * @param {Covariance} covariance
 */
function distribution(xs, ys, mean, [xx, xy, yy]) {
  const sx = Math.sqrt(Math.max(xx, 0)),
    sy = Math.sqrt(Math.max(yy, 0));
  // An axis without variance is a step at its mean.
  const standard = (/** @type {number} */ edge, /** @type {number} */ centre, /** @type {number} */ sigma) => {
    const offset = edge - EDGE - centre;
    return sigma > 0 ? offset / sigma : offset >= 0 ? Infinity : -Infinity;
  };
  const correlation = sx > 0 && sy > 0 ? Math.min(Math.max(xy / (sx * sy), -1), 1) : 0;
  const hs = xs.map((x) => standard(x, mean[0], sx)),
    ks = ys.map((y) => standard(y, mean[1], sy));
  const across = hs.map(cumulative),
    down = ks.map(cumulative);
  return ks.map((k, j) =>
    hs.map((h, i) => {
      if (correlation === 1) return Math.min(across[i], down[j]);
      if (correlation === -1) return Math.max(across[i] + down[j] - 1, 0);
      const alone = across[i] * down[j];
      return correlation === 0 || Math.abs(h) > FAR || Math.abs(k) > FAR ? alone : alone + together(h, k, correlation);
    }),
  );
}

/**
 * Return the inclusive pixels [x0, y0, x1, y1] in which a corner's map is computed; null if empty.
 *
 * @type {(mean: Point, covariance: Covariance, size: Point, convention: Convention) => Box | null}
 */
function regionOfInterest(mean, [xx, xy, yy], size, convention) {
  if (!convention.region_of_interest) return [0, 0, size[0] - 1, size[1] - 1];
  const low = [],
    high = [];
  for (const [axis, variance] of [xx, yy].entries()) {
    const reach = convention.rough_sigmas * Math.sqrt(Math.max(variance, 0));
    low.push(Math.trunc(Math.max(mean[axis] - reach, 0)));
    high.push(Math.trunc(Math.min(mean[axis] + reach, size[axis] - 1)));
    if (high[axis] < low[axis]) return null;
  }
  const [x0, y0] = low,
    [x1, y1] = high;
  const determinant = xx * yy - xy * xy;
  if (Math.abs(determinant) < convention.min_determinant) return [x0, y0, x1, y1];
  const column = Math.max(Math.min(Math.trunc(mean[0] - x0), x1 - x0), 0);
  const row = Math.max(Math.min(Math.trunc(mean[1] - y0), y1 - y0), 0);
  // Left of and above the mean, the nearest corner of a pixel is that of the next pixel.
  const shiftX = column > 0 && column < size[0] - 1 ? column : 0,
    shiftY = row > 0 && row < size[1] - 1 ? row : 0;
  /** @type {Box} */
  const kept = [x0 + column, y0 + row, x0 + column, y0 + row];
  for (let y = y0; y <= y1; y++) {
    const dy = y + (y - y0 < shiftY ? 1 : 0) - mean[1];
    for (let x = x0; x <= x1; x++) {
      const dx = x + (x - x0 < shiftX ? 1 : 0) - mean[0];
      const squared = (yy * dx * dx - 2 * xy * dx * dy + xx * dy * dy) / determinant;
      if (squared > convention.mahalanobis ** 2) continue;
      if (x < kept[0]) kept[0] = x;
      if (y < kept[1]) kept[1] = y;
      if (x > kept[2]) kept[2] = x;
      if (y > kept[3]) kept[3] = y;
    }
  }
  return kept;
}

const rounding = (/** @type {Convention} */ convention) =>
  convention.single_precision ? Math.fround : (/** @type {number} */ value) => value;

/**
 * Return a corner's map at some pixels: the probability that it lies in the image, left of and above their ends.
 *
 * @param {number[]} xs
 * @param {number[]} ys
 * @param {Point} mean
 * @param {Covariance} covariance
 * @param {Box} region
 * @param {Convention} convention
 */
function cornerMap(xs, ys, mean, covariance, [x0, y0, x1, y1], convention) {
  const round = rounding(convention),
    least = round(convention.min_probability);
  // Values are constant beyond the region, so few edges remain; the first is that of the image.
  const edges = (/** @type {number[]} */ pixels, /** @type {number} */ last) => [
    ...new Set([0, ...pixels.map((pixel) => Math.min(pixel, last) + 1)]),
  ];
  const xEdges = edges(xs, x1),
    yEdges = edges(ys, y1);
  const table = distribution(xEdges, yEdges, mean, covariance).map((row) => row.map(round));
  const xPlace = xs.map((x) => xEdges.indexOf(Math.min(x, x1) + 1));
  const yPlace = ys.map((y) => yEdges.indexOf(Math.min(y, y1) + 1));
  return ys.map((y, j) =>
    xs.map((x, i) => {
      if (x < x0 || y < y0) return 0;
      const row = table[yPlace[j]],
        column = xPlace[i];
      let value = x > x1 && y > y1 ? 1 : row[column];
      if (x0 === 0) value = round(value - row[0]); // mass left of the image
      if (y0 === 0) value = round(value - table[0][column]); // mass above it
      if (x0 === 0 && y0 === 0) value = round(value + table[0][0]);
      return value < least || value < 0 ? 0 : value;
    }),
  );
}

/** Return how much of a pixel a deterministic box covers along one axis. */
function cover(/** @type {number} */ pixel, /** @type {number} */ low, /** @type {number} */ high) {
  const first = Math.ceil(low),
    last = Math.floor(high);
  if (pixel === last + 1) return high - last;
  if (pixel === first - 1) return first - low;
  return pixel >= first && pixel <= last ? 1 : 0;
}

/** Return P(x) of the centre pixel of each cell of a `columns` x `rows` grid, row by row. */
probox.heatmap = (detection, width, height, columns, rows, convention) => {
  const [x1, y1, x2, y2] = detection.box;
  const { corners } = detection;
  const values = convention.single_precision ? new Float32Array(columns * rows) : new Float64Array(columns * rows);
  const pixels = (/** @type {number} */ count, /** @type {number} */ size) =>
    Array.from({ length: count }, (_, i) => Math.floor(((i + 0.5) * size) / count));
  const xs = pixels(columns, width),
    ys = pixels(rows, height);
  if (!corners) {
    const round = rounding(convention);
    const across = xs.map((x) => round(cover(x, x1, x2))),
      down = ys.map((y) => round(cover(y, y1, y2)));
    for (let j = 0; j < rows; j++) for (let i = 0; i < columns; i++) values[j * columns + i] = across[i] * down[j];
    return values;
  }
  /** @type {Point} */
  const size = [width, height];
  // The second corner equals the first one in the image rotated by 180 degrees.
  /** @type {Point} */
  const other = [width - (x2 + 1), height - (y2 + 1)];
  const [near, far] = [
    regionOfInterest([x1, y1], corners[0], size, convention),
    regionOfInterest(other, corners[1], size, convention),
  ];
  if (!near || !far) return values;
  // P is 0 before the first region and after the second.
  const left = xs.findIndex((x) => x >= near[0]),
    top = ys.findIndex((y) => y >= near[1]);
  const some = xs.filter((x) => x >= near[0] && x < width - far[0]);
  const few = ys.filter((y) => y >= near[1] && y < height - far[1]);
  const first = cornerMap(some, few, [x1, y1], corners[0], near, convention);
  const turned = cornerMap(
    some.map((x) => width - 1 - x),
    few.map((y) => height - 1 - y),
    other,
    corners[1],
    far,
    convention,
  );
  const least = rounding(convention)(convention.min_probability);
  for (let j = 0; j < few.length; j++) {
    for (let i = 0; i < some.length; i++) {
      const at = (top + j) * columns + left + i;
      values[at] = Math.min(first[j][i] * turned[j][i], 1);
      if (values[at] < least) values[at] = 0;
    }
  }
  return values;
};

// The heatmap layer: P(x) in colours, with stored maps loaded on demand.

const { HEAT } = probox.constants;
const RASTER = 480; // cells along the longer side: fewer than pixels, for speed
const FADE = 0.25; // colours fade out below this probability, so that the photo stays visible
const STRENGTH = 0.66;

const channels = HEAT.map((colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)));

/** Return red, green, blue and opacity of a probability, 0 to 255 each. */
probox.heatColour = (probability) => {
  const place = Math.min(Math.max(probability, 0), 1) * (channels.length - 1);
  const low = Math.min(Math.floor(place), channels.length - 2),
    share = place - low;
  const mixed = channels[low].map((value, i) => Math.round(value + share * (channels[low + 1][i] - value)));
  return [...mixed, Math.round(255 * STRENGTH * Math.min(1, Math.max(probability, 0) / FADE))];
};

const TABLE = Array.from({ length: 256 }, (_, i) => probox.heatColour(i / 255));

/**
 * Return an image of the highest probability of some detections in each cell; request stored maps that are not loaded.
 *
 * @param {SceneDetection[]} shown
 * @param {number} width
 * @param {number} height
 * @param {Convention} convention
 */
function compose(shown, width, height, convention) {
  const scale = Math.min(1, RASTER / Math.max(width, height));
  const columns = Math.max(1, Math.round(width * scale)),
    rows = Math.max(1, Math.round(height * scale));
  const highest = new Float32Array(columns * rows);
  for (const d of shown) {
    if (d.map && !d.values) {
      loadMap(d, d.map, width, height, columns, rows);
      continue;
    }
    if (d.mask) d.values ||= maskValues(d.mask, width, height, columns, rows);
    const values = d.values ?? probox.heatmap(d, width, height, columns, rows, convention);
    for (let i = 0; i < values.length; i++) if (values[i] > highest[i]) highest[i] = values[i];
  }
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const target = probox.drawing(canvas);
  const picture = target.createImageData(columns, rows);
  for (let i = 0; i < highest.length; i++) {
    if (highest[i] > 0) picture.data.set(TABLE[Math.round(255 * Math.min(highest[i], 1))], 4 * i);
  }
  target.putImageData(picture, 0, 0);
  return canvas;
}

/** Paint P(x) of the detection in focus, or the highest P(x) of all detections. */
probox.paintHeatmap = (context, geometry, view, r, detections, focus) => {
  const { width, height } = geometry;
  const shown = focus && focus.detection >= 0 ? detections.filter((d) => d.row === focus.detection) : detections;
  // Stored maps load one by one, so the number of loaded maps is part of the cache key.
  const here = shown.filter((d) => d.map && d.values).length;
  const key = `${view.threshold} ${shown === detections ? "all" : shown.map((d) => d.row)} ${here}`;
  geometry.heat ||= new Map();
  let heat = geometry.heat.get(r);
  if (heat?.key !== key) {
    heat = { key, canvas: compose(shown, width, height, view.result.convention) };
    geometry.heat.set(r, heat);
  }
  context.globalAlpha = 1;
  const smooth = context.imageSmoothingEnabled;
  context.imageSmoothingEnabled = true;
  context.drawImage(heat.canvas, 0, 0, width, height);
  context.imageSmoothingEnabled = smooth;
};

/**
 * Load a stored heatmap, a grey image of a part of the photo, then repaint.
 *
 * @param {SceneDetection} d
 * @param {NonNullable<SceneDetection["map"]>} map
 * @param {number} width
 * @param {number} height
 * @param {number} columns
 * @param {number} rows
 */
function loadMap(d, map, width, height, columns, rows) {
  if (d.loading) return;
  const image = new Image();
  d.loading = image;
  image.onload = () => {
    d.values = cellsOf(image, map.box, width, height, columns, rows);
    probox.repaint();
  };
  image.onerror = () => probox.say("a heatmap of this image cannot be read");
  image.src = map.source;
}

/** @type {(mask: SceneMask, width: number, height: number, columns: number, rows: number) => Float32Array} */
const maskValues = (mask, ...sizes) => {
  const canvas = probox.maskCanvas(mask, "#fff");
  return cellsOf(canvas, [mask.x0, mask.y0, canvas.width, canvas.height], ...sizes);
};

/**
 * Return the value of each cell, 0 to 1, of a grey image that covers `box`; transparent is 0.
 *
 * @param {CanvasImageSource} image
 * @param {[x: number, y: number, width: number, height: number]} box
 * @param {number} width
 * @param {number} height
 * @param {number} columns
 * @param {number} rows
 */
function cellsOf(image, [x, y, w, h], width, height, columns, rows) {
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const context = probox.drawing(canvas, { willReadFrequently: true });
  context.scale(columns / width, rows / height);
  context.drawImage(image, x, y, w, h);
  const { data } = context.getImageData(0, 0, columns, rows);
  return Float32Array.from({ length: columns * rows }, (_, i) => (data[4 * i] * data[4 * i + 3]) / 65025);
}

/** Make the colour scale from 0 to 1, on white. */
probox.heatScale = () => {
  const steps = HEAT.map((_, i) => {
    const share = i / (HEAT.length - 1);
    const [red, green, blue, strength] = probox.heatColour(share);
    return `rgb(${red} ${green} ${blue} / ${(strength / 255).toFixed(3)}) ${(100 * share).toFixed(1)}%`;
  });
  return probox.h(
    "div",
    {
      class: "scale",
      hidden: true,
      role: "img",
      "aria-label":
        "colours of the heatmap: P(x), the probability that a pixel belongs to a detected object, from 0, transparent, to 1, yellow",
    },
    probox.h("span", "P(x)"),
    probox.h("span", "0"),
    probox.h("i", { style: `background:linear-gradient(90deg, ${steps.join(", ")}), #fff` }),
    probox.h("span", "1"),
  );
};
