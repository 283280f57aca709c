// Labels in the large view: near their object, without overlap, with a leader line where the object is ambiguous.
const { probox } = window;
const { TP, FP, FN } = probox.constants.VERDICT;
const HEIGHT = 18,
  TOUCH = 3;

/** Return the intersection area of two boxes [left, top, right, bottom]. */
const shared = (/** @type {Box} */ a, /** @type {Box} */ b) =>
  Math.max(0, Math.min(a[2], b[2]) - Math.max(a[0], b[0])) * Math.max(0, Math.min(a[3], b[3]) - Math.max(a[1], b[1]));
const holds = (/** @type {Box} */ outer, /** @type {Box} */ inner) =>
  outer[0] <= inner[0] && outer[1] <= inner[1] && outer[2] >= inner[2] && outer[3] >= inner[3];
const apart = (/** @type {Box} */ a, /** @type {Point} */ [x, y]) =>
  Math.hypot(Math.max(a[0] - x, 0, x - a[2]), Math.max(a[1] - y, 0, y - a[3]));

/** Return candidate positions for a label of width w: at its box first, then with growing distance. */
function places(/** @type {Box} */ [left, top, right, bottom], /** @type {number} */ w, /** @type {boolean} */ far) {
  const h = HEIGHT;
  /** @type {Point[]} */
  const corners = [
    [left, top - h],
    [right - w, top - h],
    [left, bottom],
    [right - w, bottom],
    [left, top],
    [right - w, top],
    [left, bottom - h],
    [right - w, bottom - h],
  ];
  const near = corners.map(([x, y], i) => ({ x, y, cost: i < 4 ? 0 : 0.3 }));
  if (!far) return near;
  const x = (left + right - w) / 2,
    y = (top + bottom - h) / 2;
  for (const away of [14, 34, 60, 100]) {
    const cost = 0.5 + away / 200;
    for (const across of [left, x, right - w]) {
      near.push({ x: across, y: top - h - away, cost }, { x: across, y: bottom + away, cost });
    }
    for (const down of [top, y, bottom - h])
      near.push({ x: left - w - away, y: down, cost }, { x: right + away, y: down, cost });
  }
  return near;
}

/**
 * Return the positions of labels on a canvas: { x, y, leader } for each label, or null without free space.
 *
 * A label has a width `w`, the `box` of its target, `others` (boxes of objects and detections to avoid), `objects` (those
 * with which its target could be confused), `far` (whether it may be away from its box) and `anchor(x, y, inner)`, the
 * end of its leader line. A label has a `leader` [x, y, x, y] if it is away from its target or over another object.
 */
probox.placeLabels = (labels, size) => {
  /** @type {Box[]} */
  const taken = [];
  return labels.map(({ w, box, others, objects, far, anchor }) => {
    /** @type {{ x: number; y: number; cost: number; area: Box } | null} */
    let best = null;
    for (const place of places(box, w, far)) {
      /** @type {Box} */
      const area = [place.x, place.y, place.x + w, place.y + HEIGHT];
      if (!holds([0, 0, ...size], area) || taken.some((other) => shared(area, other) > 0)) continue;
      // A box that contains the target is under all positions near it, so it does not count.
      const covered = others.reduce((sum, other) => sum + (holds(other, box) ? 0 : shared(area, other)), 0);
      const cost = place.cost + Math.min(covered / (w * HEIGHT), 3);
      if (!best || cost < best.cost) best = { ...place, cost, area };
      if (cost === 0) break;
    }
    if (!best) return null;
    taken.push(best.area);
    const { area } = best;
    /** @type {Point} */
    const middle = [(area[0] + area[2]) / 2, (area[1] + area[3]) / 2];
    const doubtful = objects.some((other) => shared(area, other) > 0.15 * w * HEIGHT);
    let end = anchor(...middle, false);
    if (apart(area, end) <= TOUCH) {
      if (!doubtful) return { x: best.x, y: best.y, leader: null };
      end = anchor(...middle, true);
      if (apart(area, end) <= TOUCH) return { x: best.x, y: best.y, leader: null };
    }
    /** @type {Point} */
    const start = [Math.min(Math.max(end[0], area[0]), area[2]), Math.min(Math.max(end[1], area[1]), area[3])];
    return { x: best.x, y: best.y, leader: [...start, ...end] };
  });
};

/** Return the point of a mask nearest to x, y; if `inner`, the middle of the longest run in its central row. */
probox.pointOfMask = (object, x, y, inner) => {
  const runs = object.filled ? [] : object.runs;
  if (!runs.length) {
    const { x0, y0, x1, y1 } = object;
    if (inner) return [(x0 + x1 + 1) / 2, (y0 + y1 + 1) / 2];
    return [Math.min(Math.max(x, x0), x1 + 1), Math.min(Math.max(y, y0), y1 + 1)];
  }
  /** @type {Point} */
  let best = [x, y]; // replaced by the first run
  let least = Infinity;
  const centre = (object.y0 + object.y1 + 1) / 2;
  for (const [row, begin, end] of runs) {
    /** @type {Point} */
    const point = inner
      ? [(begin + end) / 2, row + 0.5]
      : [Math.min(Math.max(x, begin), end), Math.min(Math.max(y, row), row + 1)];
    const away = inner ? Math.abs(row + 0.5 - centre) * 1e6 - (end - begin) : (point[0] - x) ** 2 + (point[1] - y) ** 2;
    if (away < least) {
      least = away;
      best = point;
    }
  }
  return best;
};

/**
 * Return the point of a box's border nearest to x, y; its centre if `inner`.
 *
 * @type {(box: Box, x: number, y: number, inner: boolean) => Point}
 */
function pointOfBox([left, top, right, bottom], x, y, inner) {
  if (inner) return [(left + right) / 2, (top + bottom) / 2];
  if (x <= left || x >= right || y <= top || y >= bottom) {
    return [Math.min(Math.max(x, left), right), Math.min(Math.max(y, top), bottom)];
  }
  /** @type {[away: number, to: Point][]} */
  const ways = [
    [x - left, [left, y]],
    [right - x, [right, y]],
    [y - top, [x, top]],
    [bottom - y, [x, bottom]],
  ];
  return ways.sort((a, b) => a[0] - b[0])[0][1];
}

/** Draw the labels of detections and missed objects where space is free, on a canvas in CSS pixels. */
probox.paintLabels = (context, geometry, view, r, { toScreen, toImage, size, focus }) => {
  const { store } = view;
  const { detections } = view.result;
  /** @type {(box: Box) => Box} */
  const onScreen = ([x1, y1, x2, y2]) => [...toScreen(x1 + 0.5, y1 + 0.5), ...toScreen(x2 + 0.5, y2 + 0.5)];
  const kept = probox.drawnDetections(geometry, view, r, focus).reverse();
  const objects = geometry.objects.map((o) => ({ row: o.row, o, box: onScreen([o.x0, o.y0, o.x1, o.y1]) }));
  const boxes = kept.filter((d) => view.verdict[d.row] !== FP).map((d) => ({ row: d.row, box: onScreen(d.box) }));
  const boxesBut = (/** @type {{ row: number; box: Box }[]} */ list, /** @type {number} */ row) =>
    list.filter((one) => one.row !== row).map((one) => one.box);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  /** @type {NamedThing[]} */
  const things = [
    ...kept.map((d) => {
      const box = onScreen(d.box);
      return {
        text: `${view.nameOf(d.row)} ${Math.round(100 * detections.score[d.row])}`,
        box,
        verdict: view.verdict[d.row],
        colour: probox.outcomeColour(view, "d", d.row),
        chosen: focus?.detection === d.row,
        objects: [],
        others: boxesBut(boxes, d.row),
        /** @type {Label["anchor"]} */
        anchor: (x, y, inner) => pointOfBox(box, x, y, inner),
      };
    }),
    ...objects
      .filter(({ row }) => view.objectVerdict[row] === FN)
      .map(({ row, o, box }) => ({
        text: `missed ${store.nameOfClass(store.objects.class[row])}`,
        box,
        verdict: FN,
        colour: probox.outcomeColour(view, "o", row),
        chosen: focus?.object === row,
        objects: boxesBut(objects, row),
        others: [...boxesBut(objects, row), ...boxes.map((one) => one.box)],
        /** @type {Label["anchor"]} */
        anchor: (x, y, inner) => toScreen(...probox.pointOfMask(o, ...toImage(x, y), inner)),
      })),
  ];
  const rank = (/** @type {NamedThing} */ { verdict }) => (verdict === TP ? 0 : verdict === FN ? 1 : 2);
  const named = things
    .filter((thing) => !focus || thing.chosen)
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, probox.state().all ? Infinity : probox.MOST);
  // Zoomed images have parts outside of the canvas, which need no labels.
  const seen = named
    .filter(({ box }) => shared(box, [-1, -1, size[0] + 1, size[1] + 1]) > 0)
    .map((thing, _, all) => ({
      ...thing,
      w: context.measureText(thing.text).width + 10,
      far: thing.verdict === FN || all.length <= probox.MOST,
    }));
  const placed = probox.placeLabels(seen, size);
  placed.forEach((place, i) => {
    if (place?.leader) paintLeader(context, place.leader, seen[i].colour);
  });
  placed.forEach((place, i) => {
    if (place) paintLabel(context, place, seen[i]);
  });
  return placed.flatMap((place, i) => (place ? [{ ...place, text: seen[i].text }] : []));
};

/** @type {(context: Context, leader: Box, colour: string) => void} */
function paintLeader(context, [x, y, toX, toY], colour) {
  for (const { width, ink } of [
    { width: 3.5, ink: "#fff" },
    { width: 1.5, ink: colour },
  ]) {
    context.strokeStyle = ink;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(toX, toY);
    context.stroke();
    context.fillStyle = ink;
    context.beginPath();
    context.arc(toX, toY, 1.5 + width / 1.5, 0, 7);
    context.fill();
  }
}

/** @type {(context: Context, place: PlacedLabel, label: NamedThing & { w: number }) => void} */
function paintLabel(context, { x, y }, { text, w, colour }) {
  context.fillStyle = probox.css("--panel");
  context.globalAlpha = 0.9;
  context.beginPath();
  context.roundRect(x + 1, y + 1, w - 2, HEIGHT - 2, 4);
  context.fill();
  context.globalAlpha = 1;
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.stroke();
  context.fillStyle = probox.css("--ink");
  context.fillText(text, x + 5, y + HEIGHT / 2 + 0.5);
}
