// What the gallery filters, counts and sorts: items, which are matches, false positives and misses of one detector.
//
// An item is a pair of rows: `d` of a detection and `o` of an object for a match, o = -1 for a false positive, d = -1 for a
// miss. What a threshold drops and what is ignored is no item. A match counts by its object's class and size, as in the
// tables. With filters, every number of an image is of the items that pass: PDQ is the sum of their pPDQ over their
// matches, misses and what their false positives cost. Nothing here draws: it runs without a page.
const { probox } = window;
const { VERDICT, VERDICTS, SIZES } = probox.constants;
const { TP, FP, FN } = VERDICT;

/** The parts of the state that choose items or images. Others join by `addItemFilter`. */
probox.FILTERS = ["class", "size", "verdict", "quality", "lo", "hi", "duel", "find", "tagged"];
/** All that the gallery follows besides the threshold; whoever holds this list sees what joins later. */
probox.GALLERY = ["main", "rival", "show", "sort", "by", "unseen", "all", ...probox.FILTERS];

/** @type {ItemFilter[]} */
const itemFilters = [];

/**
 * Add a filter of items: `keys` of its state; `make(store, state, r, view)` returns null while it is off, or a test
 * `(d, o) => boolean`; `words(store, state)` says what passes, or "".
 */
probox.addItemFilter = (filter) => {
  itemFilters.push(filter);
  probox.FILTERS.push(...filter.keys);
  probox.GALLERY.push(...filter.keys);
};

/** Return the detector that the chosen one is held against, or null. */
probox.rivalOf = (state) => (state.rival === state.main ? null : state.rival);

const inRange = (/** @type {State} */ state) => state.lo <= 0 && state.hi >= 1;

probox.addItemFilter({
  keys: [],
  make: (store, state, r, view) => {
    if (state.class === null) return null;
    const own = view.result.detections.class,
      there = store.objects.class;
    return (d, o) => (o < 0 ? own[d] : there[o]) === state.class;
  },
  words: (store, state) =>
    [state.size === null ? "" : SIZES[state.size], state.class === null ? "" : store.classes[state.class]]
      .filter(Boolean)
      .join(" "),
});

probox.addItemFilter({
  keys: [],
  make: (store, state, r, view) => {
    const { size } = state;
    if (size === null) return null;
    const own = view.result.detections.size,
      there = store.objects.size;
    return (d, o) => Boolean(((o < 0 ? own[d] : there[o]) >> size) & 1);
  },
  words: () => "", // with the class
});

probox.addItemFilter({
  keys: [],
  make: (store, state) => {
    if (!state.verdict) return null;
    const wanted = VERDICT[state.verdict];
    return (d, o) => (o < 0 ? FP : d < 0 ? FN : TP) === wanted;
  },
  words: (store, state) => (state.verdict ? VERDICTS[VERDICT[state.verdict]] : ""),
});

probox.addItemFilter({
  keys: [],
  make: (store, state, r, view) => {
    if (inRange(state)) return null;
    const values = view.result.pairs[state.quality];
    // PDQ gives a miss or a false positive nothing; other qualities it has none.
    const none = state.quality === "pPDQ" ? 0 : NaN;
    return (d, o) => {
      const value = d < 0 || o < 0 ? none : values[view.pair[d]];
      return value >= state.lo && value <= state.hi;
    };
  },
  words: (store, state) => {
    const share = (/** @type {number} */ value) => String(Math.round(1e4 * value) / 100);
    return inRange(state) ? "" : `${state.quality} ${share(state.lo)} to ${share(state.hi)} %`;
  },
});

/** What the chosen detector (A) and the one against it (B) made of the same object, in words with their names. */
probox.DUELS = {
  won: (a, b) => `found by ${a}, missed by ${b}`,
  lost: (a, b) => `missed by ${a}, found by ${b}`,
  neither: (a, b) => `missed by ${a} and ${b}`,
  alone: (a, b) => `false positive of ${a}, none of its class of ${b} in the image`,
};
/** @type {Record<string, string>} */
const MIRRORED = { won: "lost", lost: "won" };

probox.addItemFilter({
  keys: [],
  make: (store, state, r, view) => {
    const rival = probox.rivalOf(state);
    if (!state.duel || rival === null) return null;
    // The rival's numbers are of the same objects, seen from its side.
    const mine = r === state.main;
    const other = store.view(mine ? rival : state.main, state.t);
    const duel = mine ? state.duel : MIRRORED[state.duel] || state.duel;
    if (duel === "won") return (d, o) => d >= 0 && o >= 0 && other.objectVerdict[o] === FN;
    if (duel === "lost") return (d, o) => d < 0 && other.objectVerdict[o] === TP;
    if (duel === "neither") return (d, o) => d < 0 && other.objectVerdict[o] === FN;
    if (!mine) return () => false;
    const classes = store.classes.length + 1; // a class that nobody knows is -1
    const { offsets, class: labels } = other.result.detections;
    const taken = new Uint8Array(store.count * classes);
    for (let image = 0; image < store.count; image++) {
      for (let d = offsets[image]; d < offsets[image + 1]; d++)
        if (other.verdict[d] === FP) taken[image * classes + labels[d] + 1] = 1;
    }
    const own = view.result.detections,
      imageOf = probox.imageOfRows(own.offsets);
    return (d, o) => o < 0 && !taken[imageOf[d] * classes + own.class[d] + 1];
  },
  words: (store, state) => {
    const rival = probox.rivalOf(state);
    return state.duel && rival !== null
      ? probox.DUELS[state.duel](store.results[state.main].name, store.results[rival].name)
      : "";
  },
});

/** Say what the items that pass have in common, or "" if all pass. */
probox.filterWords = (store, state) =>
  itemFilters
    .map((filter) => filter.words(store, state))
    .filter(Boolean)
    .join(", ");

/** Return which detections and objects of result `r` belong to items that pass all filters: 0 or 1 for each row. */
probox.passing = (store, state, r) => {
  const view = store.view(r, state.t);
  const tests = itemFilters.map((filter) => filter.make(store, state, r, view)).filter((test) => test !== null);
  const passes = (/** @type {number} */ d, /** @type {number} */ o) => {
    for (const test of tests) if (!test(d, o)) return 0;
    return 1;
  };
  const { pair, objectVerdict } = view;
  const partner = view.result.pairs.object;
  const found = new Uint8Array(view.verdict.length),
    there = new Uint8Array(objectVerdict.length);
  for (const d of view.right) found[d] = there[partner[pair[d]]] = passes(d, partner[pair[d]]);
  for (const d of view.wrong) found[d] = passes(d, -1);
  for (let o = 0; o < objectVerdict.length; o++) if (objectVerdict[o] === FN) there[o] = passes(-1, o);
  return { found, there, all: !tests.length };
};

/** Return PDQ, lost points, TP, FP and FN of what passes, for each image; the first two are NaN where nothing does. */
probox.imageSums = (store, state, r, { found, there }) => {
  const view = store.view(r, state.t);
  const groups = (/** @type {Uint32Array} */ offsets, /** @type {Uint8Array} */ passes) =>
    probox.imageOfRows(offsets).map((image, row) => (passes[row] ? image : -1));
  const own = groups(view.result.detections.offsets, found);
  const sums = view.sums(store.count, own, groups(store.objects.offsets, there));
  const counted = sums.TP.map((right, i) => right + sums.cost[i] + sums.FN[i] || NaN);
  const PDQ = sums.pPDQ.map((sum, i) => sum / counted[i]);
  const lost = sums.pPDQ.map((sum, i) => counted[i] - sum);
  return { PDQ, lost, TP: sums.TP, FP: sums.FP, FN: sums.FN };
};

// What comes first has the least of these; `a` and `b` are sums of the chosen detector and of its rival.
/** @type {Record<string, (a: ImageSums, b: ImageSums) => (i: number) => number>} */
const SORTS = {
  worst: (a) => (i) => -a.lost[i],
  best: (a) => (i) => -a.PDQ[i],
  ahead: (a, b) => (i) => b.PDQ[i] - a.PDQ[i],
  behind: (a, b) => (i) => a.PDQ[i] - b.PDQ[i],
  missed: (a) => (i) => -a.FN[i],
  wrong: (a) => (i) => -a.FP[i],
  crowded: (a) => (i) => -(a.TP[i] + a.FN[i]),
  number: () => () => 0,
};
probox.SORTS = Object.keys(SORTS);
const DIFFERENCES = ["ahead", "behind"];
// In these, images that a detector never saw would stand before all it made of the others.
const JUDGING = ["worst", "best", "ahead", "behind", "missed"];

/** Return the order that is shown: differences need a rival. */
probox.sortOf = (state) => (DIFFERENCES.includes(state.sort) && probox.rivalOf(state) === null ? "worst" : state.sort);
probox.orderOf = (state) => (DIFFERENCES.includes(state.by) && probox.rivalOf(state) === null ? "missed" : state.by);

// Images that a detector seems never to have been run on: the evaluation's own rule, which is told.
const neverSeen = (/** @type {Store} */ store, /** @type {State} */ state, /** @type {string} */ sort) => {
  const rival = probox.rivalOf(state);
  const own = store.results[state.main].unseen;
  if (!DIFFERENCES.includes(sort) || rival === null) return own;
  const others = store.results[rival].unseen;
  return own.map((value, image) => value | others[image]);
};

/**
 * Sort rows of images; images without a value come last, before them those that the detector never saw.
 *
 * Ties go by number. `sums` and `rivals` are `imageSums`. Returns the rows and how many of them were put apart.
 */
probox.sortImages = (store, state, rows, sums, rivals) => {
  const sort = probox.sortOf(state);
  const value = SORTS[sort](sums, rivals ?? sums); // without a rival no order is by differences
  const key = Float64Array.from({ length: store.count }, (_, i) => value(i));
  const apart =
    JUDGING.includes(sort) && state.unseen === "last" ? neverSeen(store, state, sort) : new Uint8Array(store.count);
  const group = (/** @type {number} */ i) => (Number.isNaN(key[i]) ? 2 : apart[i]);
  const sorted = [...rows].sort((i, j) => group(i) - group(j) || key[i] - key[j] || i - j);
  return { rows: sorted, apart: rows.filter((i) => group(i) === 1).length };
};

// The order of single items: the group of a match, a miss and a false positive, and what decides within it.
const bigness = (/** @type {number} */ bits) => 31 - Math.clz32(bits || 1);
/** @type {Record<string, { groups: [match: number, miss: number, wrong: number]; sign: number }>} */
const ORDERS = {
  missed: { groups: [1, 0, 2], sign: 1 },
  worst: { groups: [0, 1, 2], sign: 1 },
  best: { groups: [0, 1, 2], sign: -1 },
  surest: { groups: [2, 1, 0], sign: 1 },
  ahead: { groups: [0, 0, 1], sign: 1 },
  behind: { groups: [0, 0, 1], sign: 1 },
  number: { groups: [0, 0, 0], sign: 1 },
};
probox.ORDERS = Object.keys(ORDERS);

/**
 * Return the items of some images that pass, at most `most` of them, in the order that the state says, and how many
 * there are.
 *
 * Misses: the large ones first. Matches: by the chosen quality. False positives: the surest first. Differences are of
 * an object's pPDQ, 0 where it is missed. What lies in images never seen comes last, as images do.
 */
probox.itemList = (store, state, { found, there }, most, images) => {
  const by = probox.orderOf(state);
  const { groups, sign } = ORDERS[by];
  const view = store.view(state.main, state.t);
  const number = probox.rivalOf(state);
  const rival = DIFFERENCES.includes(by) && number !== null ? store.view(number, state.t) : null;
  const { detections, pairs } = view.result;
  const apart = by !== "number" && state.unseen === "last" ? neverSeen(store, state, by) : null;
  const pPDQ = (/** @type {View} */ one, /** @type {number} */ o) =>
    one.objectVerdict[o] === TP ? one.result.pairs.pPDQ[one.pair[one.objectDetection[o]]] : 0;
  const quality = pairs[state.quality];
  const value = (/** @type {number} */ d, /** @type {number} */ o) => {
    if (by === "number") return 0;
    if (o < 0) return -detections.score[d];
    if (rival) return (by === "ahead" ? -1 : 1) * (pPDQ(view, o) - pPDQ(rival, o));
    return d < 0 ? -bigness(store.objects.size[o]) : sign * quality[view.pair[d]];
  };
  // Columns rather than objects: without a threshold there may be hundreds of thousands of items.
  const size = found.length + there.length;
  const table = {
    image: new Int32Array(size),
    d: new Int32Array(size),
    o: new Int32Array(size),
    group: new Uint8Array(size),
    value: new Float64Array(size),
  };
  let total = 0;
  const add = (/** @type {number} */ image, /** @type {number} */ d, /** @type {number} */ o) => {
    table.image[total] = image;
    table.d[total] = d;
    table.o[total] = o;
    table.group[total] = groups[o < 0 ? 2 : d < 0 ? 1 : 0] + (apart && apart[image] ? 3 : 0);
    table.value[total++] = value(d, o);
  };
  for (const image of [...images].sort((i, j) => i - j)) {
    for (let d = detections.offsets[image]; d < detections.offsets[image + 1]; d++) {
      if (found[d]) add(image, d, view.verdict[d] === TP ? pairs.object[view.pair[d]] : -1);
    }
    for (let o = store.objects.offsets[image]; o < store.objects.offsets[image + 1]; o++) {
      if (there[o] && view.objectVerdict[o] === FN) add(image, -1, o);
    }
  }
  /** @type {number[]} */
  const places = [];
  for (let group = 0; group < 6 && places.length < most; group++)
    places.push(...first(table, total, group, most - places.length));
  return { items: places.map((i) => ({ image: table.image[i], d: table.d[i], o: table.o[i] })), total };
};

/**
 * Return the places of the `most` items of a group with least values, in order; ties as they stand.
 *
 * @param {{ group: Uint8Array; value: Float64Array }} table
 * @param {number} total
 * @param {number} wanted
 * @param {number} most
 */
function first({ group, value }, total, wanted, most) {
  let count = 0;
  for (let i = 0; i < total; i++) if (group[i] === wanted) count++;
  // Only those that will be shown are sorted by place: numbers alone are sorted much faster.
  let limit = Infinity,
    ties = Infinity;
  if (count > most) {
    const values = new Float64Array(count);
    for (let i = 0, n = 0; i < total; i++) if (group[i] === wanted) values[n++] = value[i];
    values.sort();
    limit = values[most - 1];
    ties = most - values.indexOf(limit);
  }
  const places = [];
  for (let i = 0; i < total; i++) {
    if (group[i] === wanted && (value[i] < limit || (value[i] === limit && ties-- > 0))) places.push(i);
  }
  return places.sort((i, j) => value[i] - value[j] || i - j);
}

/** Return the share of true positives, in per cent, in each of `bins` equal ranges of a quality; 1 is in the last. */
probox.histogram = (view, quality, bins) => {
  const counts = new Array(bins).fill(0);
  const values = view.result.pairs[quality],
    rows = view.right;
  for (const d of rows) counts[Math.min(bins - 1, Math.floor(values[view.pair[d]] * bins))]++;
  return counts.map((n) => (100 * n) / Math.max(rows.length, 1));
};
