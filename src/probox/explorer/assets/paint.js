// Drawing of an image: photo, masks, boxes and ellipses on a canvas.
const { probox } = window;
const { TP, FP, FN, DROPPED } = probox.constants.VERDICT;
const DASHES = { right: [], "wrong-class": [2, 3], wrong: [7, 4], neutral: [] }; // outcomes differ by dashes as well as colours
const MOST = (probox.MOST = 20); // detections with ellipses or labels, unless the user shows all

probox.field("all", "", "detections", probox.oneOf(["all"]));

const toneOf = (probox.toneOf = (view, kind, row) => {
  const verdict = (kind === "d" ? view.verdict : view.objectVerdict)[row];
  if (verdict === TP) return view.wrongClass(kind === "d" ? row : view.objectDetection[row]) ? "wrong-class" : "right";
  return verdict === FP || verdict === FN ? "wrong" : "neutral";
});
const colourOf = (probox.outcomeColour = (view, kind, row) => probox.css(`--${toneOf(view, kind, row)}`));

/** @typedef {{ image: HTMLImageElement; waiting: ((image: HTMLImageElement) => void)[]; ready: boolean }} Photo */
/** @type {Map<string, Photo>} */
const photos = new Map();

/** Load a photo once and call `callback` when it can be drawn; never called without a photo. */
probox.withPhoto = (store, row, small, callback) => {
  const ending = store.images.photo[row];
  if (!ending) return;
  const embedded = document.getElementById(`photo-${row}`);
  const source = embedded ? embedded.textContent : small ? `thumbs/${row}.jpg` : `photos/${row}${ending}`;
  let entry = photos.get(source);
  if (!entry) {
    const image = new Image();
    /** @type {Photo} */
    const made = { image, waiting: [], ready: false };
    entry = made;
    photos.set(source, made);
    image.onload = () => {
      made.ready = true;
      for (const one of made.waiting.splice(0)) one(image);
    };
    image.src = source;
    const [oldest] = photos.keys();
    if (photos.size > 300) photos.delete(oldest); // decoded photos are large
  }
  if (entry.ready) callback(entry.image);
  else entry.waiting.push(callback);
};

/** Return the detections of an image above the threshold, the most confident last. */
probox.keptDetections = (geometry, view, r) => {
  const { confidence } = view.result.detections;
  return geometry.results[r]
    .filter((d) => view.verdict[d.row] !== DROPPED)
    .sort((a, b) => confidence[a.row] - confidence[b.row]);
};

/**
 * Return the best threshold on the page's images if no threshold is set; images show detections above it.
 *
 * @param {View} view
 */
const limitOf = ({ threshold, result }) =>
  threshold === null && result.convention.label_threshold === null ? (result.why.best?.threshold ?? null) : null;
const levelOf = (/** @type {View} */ view) => Math.fround((!probox.state().all && limitOf(view)) || -1);

/** Return the detections that images show: above the limit, and the one in focus. */
probox.drawnDetections = (geometry, view, r, focus) => {
  const { confidence } = view.result.detections,
    level = levelOf(view);
  return probox
    .keptDetections(geometry, view, r)
    .filter((d) => confidence[d.row] > level || d.row === focus?.detection);
};

/** Return a note on the shown detections with a button for the others; with `image`, for that image. */
probox.limitNote = (view, image) => {
  const limit = limitOf(view),
    { all } = probox.state();
  if (limit === null) return [];
  const { confidence, offsets } = view.result.detections;
  const own = image === undefined ? null : confidence.subarray(offsets[image], offsets[image + 1]);
  const drawn = own?.filter((value) => value > levelOf(view)).length;
  if (own && drawn === own.length && !all) return [];
  const above = `above ${+limit.toPrecision(4)}`;
  const words = all
    ? `${own ? `All ${own.length} detections drawn` : "Images show all detections"}.`
    : own
      ? `${drawn} of ${own.length} detections drawn: ${above}, the best threshold on these images.`
      : `Images show detections ${above}, the best threshold on these images; objects matched below it are faint.`;
  return [
    words,
    " ",
    probox.h(
      "button",
      { type: "button", onclick: () => probox.update({ all: all ? "" : "all" }) },
      all ? `Show only ${above}` : `Show all${own ? ` ${own.length}` : ""}`,
    ),
  ];
};

// Legend of the colours in images.
probox.onStart(() => {
  for (const place of document.querySelectorAll(".outcomes"))
    place.replaceChildren(
      ...[
        ["right", "true positive"],
        ["wrong-class", "true positive of another class"],
        ["wrong", "false positive"],
        ["wrong missed", "missed object"],
      ].map(([tone, words]) => probox.h("span", { class: tone }, probox.h("i", {}), words)),
    );
});

/** Call `work`, which paints on a context scaled to an image's pixels, clipped to the image. */
probox.within = (context, width, height, work) => {
  context.save();
  context.beginPath();
  context.rect(0, 0, width, height);
  context.clip();
  work();
  context.restore();
};

/** Paint an image of the gallery: photo or background, and scene; `place` is scale, left and top on the canvas. */
probox.paintSmall = (canvas, view, r, row, place, photo, geometry, options) => {
  if (!canvas.isConnected) return;
  const { w, h } = view.store.images,
    [zoom, left, top] = place;
  const context = probox.drawing(canvas);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.setTransform(zoom, 0, 0, zoom, left, top);
  context.fillStyle = probox.css("--ground");
  context.fillRect(0, 0, w[row], h[row]);
  if (photo) context.drawImage(photo, 0, 0, w[row], h[row]);
  if (geometry) probox.within(context, w[row], h[row], () => probox.paintScene(context, geometry, view, r, options));
};

/**
 * Paint objects and detections; the context is scaled so that a pixel of the image is `zoom` wide.
 * The most confident detections have ellipses at one standard deviation, the one in focus at those of `rings`.
 * `focus` has the rows { object, detection } to highlight, or is null.
 */
probox.paintScene = (context, geometry, view, r, { zoom, layers, focus, fine, rings = [1] }) => {
  const line = 1 / zoom;
  const detections = probox.drawnDetections(geometry, view, r, focus);
  const drawn = new Set(detections.map((d) => d.row));
  const ringless = probox.state().all ? 0 : detections.length - MOST;
  const thin = Math.min(1, Math.max(0.45, 40 / Math.max(detections.length, 1)));
  context.imageSmoothingEnabled = zoom < 1;
  if (layers.has("h")) probox.paintHeatmap(context, geometry, view, r, detections, focus);
  if (layers.has("m")) {
    const byArea = [...geometry.objects].sort((a, b) => (b.x1 - b.x0) * (b.y1 - b.y0) - (a.x1 - a.x0) * (a.y1 - a.y0));
    for (const object of byArea) {
      const colour = colourOf(view, "o", object.row);
      const chosen = focus && focus.object === object.row;
      const match = view.objectDetection[object.row];
      const faint = focus ? !chosen : match >= 0 && !drawn.has(match); // its detection is not drawn
      const shown = !layers.has("h") || view.objectVerdict[object.row] === FN;
      fillMask(context, object, colour, !shown ? 0 : chosen ? 0.55 : faint ? 0.14 : 0.36, fine);
      if (view.objectVerdict[object.row] === FN && !fine && !(focus && !chosen)) hatch(context, object, colour, line);
      strokeMask(context, object, colour, faint ? 0.3 : 1, (chosen ? 2.4 : fine ? 1 : 1.5) * line);
    }
    for (const { row, mask } of detections) {
      if (!mask) continue;
      const colour = colourOf(view, "d", row);
      const chosen = focus && focus.detection === row,
        faint = focus && !chosen;
      fillMask(context, mask, colour, layers.has("h") ? 0 : chosen ? 0.4 : faint ? 0.08 : 0.22, fine);
      // White below, as boxes have, unlike the outlines of objects.
      strokeMask(context, mask, "#fff", faint ? 0.15 : 0.7, (chosen ? 4.5 : 3.2) * line);
      strokeMask(context, mask, colour, faint ? 0.3 : 1, (chosen ? 2 : 1.2) * line);
    }
  }
  detections.forEach((d, place) => {
    const chosen = focus && focus.detection === d.row;
    const verdict = view.verdict[d.row];
    const opacity = verdict === TP ? 1 : (0.45 + 0.55 * view.result.detections.confidence[d.row]) * thin;
    const colour = colourOf(view, "d", d.row);
    const strength = chosen ? 1 : focus ? 0.22 : opacity;
    if (layers.has("e") && d.corners && (chosen || place >= ringless))
      paintCorners(context, d, d.corners, colour, strength, line, chosen ? rings : [1]);
    if (layers.has("b"))
      paintBox(
        context,
        d,
        colour,
        strength,
        (chosen ? 2.6 : 1.7 * thin) * line,
        fine,
        DASHES[toneOf(view, "d", d.row)].map((length) => length * line),
      );
  });
  context.globalAlpha = 1;
};

/** @type {(context: Context, mask: SceneMask, colour: string, strength: number, fine: boolean) => void} */
function fillMask(context, mask, colour, strength, fine) {
  if (strength === 0) return;
  context.globalAlpha = strength;
  context.fillStyle = colour;
  if (fine || mask.filled) context.fill(probox.area(mask));
  else context.drawImage(probox.maskCanvas(mask, colour), mask.x0, mask.y0);
}

/** @type {(context: Context, mask: SceneMask, colour: string, strength: number, width: number) => void} */
function strokeMask(context, mask, colour, strength, width) {
  context.globalAlpha = strength;
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.lineCap = "square";
  context.stroke(probox.outline(mask));
}

/**
 * @param {Context} context
 * @param {SceneDetection} d
 * @param {string} colour
 * @param {number} strength
 * @param {number} width
 * @param {boolean} fine
 * @param {number[]} dash
 */
function paintBox(context, d, colour, strength, width, fine, dash) {
  // Pixel x covers x to x + 1 on the canvas, so a corner at x is drawn at x + 0.5.
  const [x1, y1, x2, y2] = d.box;
  if (!fine) {
    context.globalAlpha = 0.5 * strength;
    context.strokeStyle = "#fff";
    context.lineWidth = 1.9 * width;
    context.strokeRect(x1 + 0.5, y1 + 0.5, x2 - x1, y2 - y1);
  }
  context.globalAlpha = strength;
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.setLineDash(dash); // for readers with a colour vision deficiency
  context.strokeRect(x1 + 0.5, y1 + 0.5, x2 - x1, y2 - y1);
  context.setLineDash([]);
}

/**
 * Hatch a mask, because missed objects must not differ by colour only.
 *
 * @type {(context: Context, object: SceneObject, colour: string, line: number) => void}
 */
function hatch(context, object, colour, line) {
  const { x0, y0, x1, y1 } = object;
  const high = y1 - y0 + 1,
    step = 9 * line;
  context.save();
  context.clip(probox.area(object));
  context.globalAlpha = 0.55;
  context.strokeStyle = colour;
  context.lineWidth = 1.4 * line;
  context.beginPath();
  for (let x = x0 - high; x <= x1 + 1; x += step) {
    context.moveTo(x, y1 + 1);
    context.lineTo(x + high, y0);
  }
  context.stroke();
  context.restore();
}

/**
 * @param {Context} context
 * @param {SceneDetection} d
 * @param {Covariance[]} corners
 * @param {string} colour
 * @param {number} strength
 * @param {number} line
 * @param {number[]} rings standard deviations, the outermost first
 */
function paintCorners(context, d, corners, colour, strength, line, rings) {
  corners.forEach((covariance, corner) => {
    const { long, short, angle } = probox.axes(covariance);
    const x = d.box[2 * corner] + 0.5,
      y = d.box[2 * corner + 1] + 0.5;
    for (const deviations of rings) {
      context.beginPath();
      context.ellipse(x, y, deviations * long, deviations * short, angle, 0, 2 * Math.PI);
      context.fillStyle = colour;
      context.globalAlpha = 0.16 * strength;
      context.fill();
      context.strokeStyle = "#fff";
      context.lineWidth = 2.4 * line;
      context.globalAlpha = 0.35 * strength;
      context.stroke();
      context.strokeStyle = colour;
      context.lineWidth = 1.1 * line;
      context.globalAlpha = (1.15 - 0.22 * deviations) * strength;
      context.stroke();
    }
  });
}

// Samples: boxes drawn from a detection's corner Gaussians. The same seed and number give the same box, so that a link
// shows the same samples.

const SHOWN = 6; // boxes per detection, older ones fainter
const STILL = 12; // boxes per detection with reduced motion
const EVERY = 140; // milliseconds from one box to the next

/** Hash integers into one of 32 bits. */
function mixed(/** @type {number[]} */ ...numbers) {
  let hash = 0x9e3779b9;
  for (const number of numbers) {
    hash = Math.imul(hash ^ (number | 0), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    hash ^= hash >>> 16;
  }
  return hash >>> 0;
}

/** Return a generator of uniform random numbers, 0 and 1 excluded. */
function uniform(/** @type {number} */ seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296 + 2 ** -33;
  };
}

/** Return sample `number` from N(corner, covariance) at both corners; null without covariance. */
probox.sampleBox = (detection, seed, number) => {
  if (!detection.corners) return null;
  const next = uniform(mixed(seed, number));
  const ends = detection.corners.flatMap(([xx, xy, yy], corner) => {
    // Two standard normal numbers (Box-Muller), and the Cholesky factor L of the covariance.
    const radius = Math.sqrt(-2 * Math.log(next())),
      angle = 2 * Math.PI * next();
    const u = radius * Math.cos(angle),
      v = radius * Math.sin(angle);
    const l11 = Math.sqrt(Math.max(xx, 0)),
      l21 = l11 > 0 ? xy / l11 : 0;
    const l22 = Math.sqrt(Math.max(yy - l21 * l21, 0));
    return [detection.box[2 * corner] + l11 * u, detection.box[2 * corner + 1] + l21 * u + l22 * v];
  });
  return /** @type {Box} */ (ends);
};

/** Return the visible samples of a detection after some steps, with their opacity, the newest last. */
probox.shownSamples = (detection, seed, step, still) => {
  const first = still ? 0 : Math.max(0, step - SHOWN + 1),
    last = still ? STILL - 1 : step;
  const boxes = [];
  for (let number = first; number <= last; number++) {
    boxes.push({
      box: probox.sampleBox(detection, seed, number),
      strength: still ? 0.4 : 1 - (last - number) / SHOWN,
    });
  }
  return boxes;
};

/** Paint samples of detections on a context scaled as for the scene. */
probox.paintSamples = (context, detections, { seed, step, still, zoom, colour }) => {
  for (const d of detections) {
    if (!d.corners) continue;
    for (const { box, strength } of probox.shownSamples(d, seed(d), step, still)) {
      if (!box) continue;
      const [x1, y1, x2, y2] = box;
      for (const { width, ink, alpha } of [
        { width: 3, ink: "#fff", alpha: 0.45 },
        { width: 1.3, ink: colour(d), alpha: 0.95 },
      ]) {
        context.globalAlpha = alpha * strength;
        context.strokeStyle = ink;
        context.lineWidth = width / zoom;
        context.strokeRect(x1 + 0.5, y1 + 0.5, x2 - x1, y2 - y1);
      }
    }
  }
  context.globalAlpha = 1;
};

probox.sampleSeed = (image, r, number) => mixed(image, r, number);

/** Call `paint(step, still)` repeatedly while `wanted()` is true; call `check()` after a change of `wanted`. */
probox.sampler = (wanted, paint) => {
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  /** @type {number | null} */
  let timer = null;
  let step = 0;
  const check = () => {
    const moving = wanted() && !calm.matches && !document.hidden;
    if (moving && timer === null)
      timer = setInterval(() => {
        step++;
        paint(step, false);
      }, EVERY);
    if (!moving && timer !== null) {
      clearInterval(timer);
      timer = null;
    }
    probox.sampling = timer !== null;
  };
  document.addEventListener("visibilitychange", check);
  calm.addEventListener("change", () => {
    check();
    paint(step, calm.matches);
  });
  return {
    check,
    reset: () => {
      step = 0;
    },
    now: () => paint(step, calm.matches),
  };
};
