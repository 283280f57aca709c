// Boxes, covariances and masks of images: loaded in chunks on demand, drawn on canvases.
const { probox } = window;
/** @type {Map<number, { images?: KeptImage[]; waiting: ((images: KeptImage[]) => void)[] }>} */
const chunks = new Map(); // by number

/** Receive a chunk; each data file calls this. */
probox.receive = (number, images) => {
  const waiting = chunks.get(number)?.waiting ?? [];
  chunks.set(number, { images, waiting });
  for (const callback of waiting.splice(0)) callback(images);
};

/** Call `callback` with an image's geometry, at once if it is loaded. */
probox.withGeometry = (store, row, callback) => {
  const size = store.index.chunk;
  const number = Math.floor(row / size);
  let chunk = chunks.get(number);
  const hand = (/** @type {KeptImage[]} */ images) => callback(unpack(store, images[row % size], row));
  if (chunk?.images) {
    hand(chunk.images);
    return;
  }
  if (!chunk) {
    chunks.set(number, (chunk = { waiting: [] }));
    load(number);
  }
  chunk.waiting.push(hand);
};

function load(/** @type {number} */ number) {
  const embedded = document.getElementById(`chunk-${number}`);
  if (embedded) {
    queueMicrotask(() => probox.receive(number, JSON.parse(embedded.textContent)));
    return;
  }
  const script = document.createElement("script");
  script.src = `data/chunk-${number}.js`;
  script.onerror = () => probox.say(`cannot load data/chunk-${number}.js; the report folder may be incomplete`);
  document.head.append(script);
}

/**
 * Return an image's geometry; rows refer to the columns of the store.
 *
 * @type {(store: Store, packed: KeptImage, row: number) => Geometry}
 */
function unpack(store, packed, row) {
  if (packed.ready) return packed.ready;
  const first = store.objects.offsets[row];
  const objects = packed.o.map((mask, n) => ({ row: first + n, ...unpackMask(mask) }));
  const results = packed.d.map((own, r) => {
    const { offsets } = store.results[r].detections;
    return detectionsOf(own, offsets[row], offsets[row + 1] - offsets[row]);
  });
  packed.ready = { objects, results, width: store.images.w[row], height: store.images.h[row] };
  return packed.ready;
}

/** @type {(packed: PackedMask) => SceneMask} */
const unpackMask = ([x0, y0, x1, y1, runs]) => ({ x0, y0, x1, y1, filled: !runs, runs: decodeRuns(runs, x0, y0) });

const isMap = (/** @type {StoredMap | PackedMask | undefined} */ stored) => typeof stored?.[0] === "string";

/**
 * Return an image's detections: four numbers each, or ten with covariances, and stored heatmaps and masks.
 *
 * @type {(packed: PackedImage["d"][number], first: number, count: number) => SceneDetection[]}
 */
function detectionsOf(packed, first, count) {
  /** @type {[numbers: string, pixels: Record<string, StoredMap | PackedMask>]} */
  const [text, pixels] = typeof packed === "string" ? [packed, {}] : packed;
  const covariance = (/** @type {number[]} */ three) => /** @type {Covariance} */ (three);
  const unpackMap = (/** @type {StoredMap} */ [source, ...box]) => ({ source, box });
  const numbers = probox.column(["f32", text]);
  const width = count ? numbers.length / count : 0;
  return Array.from({ length: count }, (_, n) => {
    const own = Array.from(numbers.subarray(n * width, (n + 1) * width));
    const stored = pixels[n];
    const map = isMap(stored) ? unpackMap(/** @type {StoredMap} */ (stored)) : null;
    const mask = stored && !map ? unpackMask(/** @type {PackedMask} */ (stored)) : null;
    const uncertain = !stored && own.slice(4).some((value) => value !== 0);
    return {
      row: first + n,
      box: /** @type {Box} */ (own.slice(0, 4)),
      corners: uncertain ? [covariance(own.slice(4, 7)), covariance(own.slice(7, 10))] : null,
      map,
      mask,
    };
  });
}

/** Return [y, begin, end] of each run of a mask; without text the mask fills its box and has no runs. */
function decodeRuns(/** @type {string | undefined} */ text, /** @type {number} */ x0, /** @type {number} */ y0) {
  /** @type {Run[]} */
  const runs = [];
  if (!text) return runs;
  const binary = atob(text);
  let place = 0;
  const next = () => {
    let value = 0,
      shift = 0,
      byte;
    do {
      byte = binary.charCodeAt(place++);
      value |= (byte & 127) << shift;
      shift += 7;
    } while (byte & 128);
    return value;
  };
  const signed = () => {
    const value = next();
    return value & 1 ? -((value + 1) >> 1) : value >> 1;
  };
  let y = y0,
    begin = x0,
    length = 0;
  while (place < binary.length) {
    y += next();
    begin += signed();
    length += signed();
    runs.push([y, begin, begin + length]);
  }
  return runs;
}

probox.contains = (object, x, y) =>
  object.filled || object.runs.some(([row, begin, end]) => row === Math.floor(y) && x >= begin && x < end);

/** Return the mask as a canvas of one colour with the size of the object's box. */
probox.maskCanvas = (object, colour) => {
  object.bitmaps ||= new Map();
  let canvas = object.bitmaps.get(colour);
  if (!canvas) {
    canvas = document.createElement("canvas");
    // A canvas of size 0 cannot be drawn, and a mask without pixels has no width.
    canvas.width = Math.max(1, object.x1 - object.x0 + 1);
    canvas.height = Math.max(1, object.y1 - object.y0 + 1);
    const context = probox.drawing(canvas);
    context.fillStyle = colour;
    if (object.filled && object.x1 >= object.x0) context.fillRect(0, 0, canvas.width, canvas.height);
    for (const [y, begin, end] of object.runs) context.fillRect(begin - object.x0, y - object.y0, end - begin, 1);
    object.bitmaps.set(colour, canvas);
  }
  return canvas;
};

/** Return the mask's area as a path, for thumbnails, in which single pixels are invisible. */
probox.area = (object) => {
  if (!object.area) {
    object.area = new Path2D();
    if (object.filled) object.area.rect(object.x0, object.y0, object.x1 - object.x0 + 1, object.y1 - object.y0 + 1);
    else for (const [y, begin, end] of object.runs) object.area.rect(begin, y, end - begin, 1.02);
  }
  return object.area;
};

/** Return the mask's outline: the sides of pixels between inside and outside. */
probox.outline = (object) => {
  if (object.outline) return object.outline;
  if (object.filled) return (object.outline = probox.area(object));
  const path = new Path2D();
  /** @type {Map<number, number[]>} */
  const rows = new Map(); // starts and ends of runs by y
  for (const [y, begin, end] of object.runs) {
    path.moveTo(begin, y);
    path.lineTo(begin, y + 1);
    path.moveTo(end, y);
    path.lineTo(end, y + 1);
    const ends = rows.get(y) ?? [];
    ends.push(begin, end);
    rows.set(y, ends);
  }
  for (let y = object.y0; y <= object.y1 + 1; y++) {
    // The outline runs between two rows where exactly one of them is inside.
    const ends = [...(rows.get(y - 1) || []), ...(rows.get(y) || [])].sort((a, b) => a - b);
    for (let i = 0; i + 1 < ends.length; i += 2) {
      if (ends[i] === ends[i + 1]) continue;
      path.moveTo(ends[i], y);
      path.lineTo(ends[i + 1], y);
    }
  }
  return (object.outline = path);
};

/** Return half-axes and angle of a covariance [xx, xy, yy]. */
probox.axes = ([xx, xy, yy]) => {
  const mean = (xx + yy) / 2,
    spread = Math.hypot((xx - yy) / 2, xy);
  return {
    long: Math.sqrt(Math.max(mean + spread, 0)),
    short: Math.sqrt(Math.max(mean - spread, 0)),
    angle: 0.5 * Math.atan2(2 * xy, xx - yy),
  };
};
