// Filters, counts and sorting of the gallery. Its items are matches, false positives and misses of one detector.
//
// An item is a pair of rows, `d` of a detection and `o` of an object: o = -1 for a false positive, d = -1 for a miss.
// Dropped and ignored rows are not items. A match has the class and size of its object, as in the tables. With filters,
// the numbers of an image refer to the items that pass: PDQ is the sum of their pPDQ, divided by their matches, misses
// and the cost of their false positives. This file uses no elements of the page.
const { probox } = window;
const { VERDICT, VERDICTS, SIZES } = probox.constants;
const { TP, FP, FN } = VERDICT;

/** Parts of the state that filter items or images; `addItemFilter` adds others. */
probox.FILTERS = ["class", "size", "verdict", "quality", "lo", "hi", "duel", "find", "tagged"];
/** Parts of the state that redraw the gallery, besides the threshold. `addItemFilter` extends the list in place. */
probox.GALLERY = ["main", "rival", "show", "sort", "by", "unseen", "all", ...probox.FILTERS];

/** @type {ItemFilter[]} */
const itemFilters = [];

/**
 * Add a filter of items: `keys` of its state; `make(store, state, r, view)` returns a test `(d, o) => boolean`, or null
 * if it is off; `words(store, state)` describes the items that pass, or returns "".
 */
probox.addItemFilter = (filter) => {
  itemFilters.push(filter);
  probox.FILTERS.push(...filter.keys);
  probox.GALLERY.push(...filter.keys);
};

/** Return the detector with which the main one is compared, or null. */
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
  words: () => "", // included in the text of the class filter
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
    // pPDQ of a miss or a false positive is 0; the other qualities are undefined.
    const none = state.quality === "pPDQ" ? 0 : NaN;
    return (d, o) => {
      const value = d < 0 || o < 0 ? none : values[view.pair[d]];
      return value >= state.lo && value <= state.hi;
    };
  },
  words: (store, state) => {
    const rounded = (/** @type {number} */ value) => String(Math.round(1e4 * value) / 100);
    return inRange(state) ? "" : `${state.quality} ${rounded(state.lo)} to ${rounded(state.hi)}%`;
  },
});

/**
 * Joint outcomes of the main detector (a) and its rival (b), as text.
 *
 * `alone`: in the image, b has no false positive of the same class.
 */
probox.DUELS = {
  won: (a, b) => `detected by ${a}, missed by ${b}`,
  lost: (a, b) => `missed by ${a}, detected by ${b}`,
  neither: (a, b) => `missed by ${a} and ${b}`,
  alone: (a, b) => `false positive of ${a}, not of ${b}`,
};
/** @type {Record<string, string>} */
const MIRRORED = { won: "lost", lost: "won" };

probox.addItemFilter({
  keys: [],
  make: (store, state, r, view) => {
    const rival = probox.rivalOf(state);
    if (!state.duel || rival === null) return null;
    // The filter of the rival's items is mirrored, so that both refer to the same objects.
    const mine = r === state.main;
    const other = store.view(mine ? rival : state.main, state.t);
    const duel = mine ? state.duel : MIRRORED[state.duel] || state.duel;
    if (duel === "won") return (d, o) => d >= 0 && o >= 0 && other.objectVerdict[o] === FN;
    if (duel === "lost") return (d, o) => d < 0 && other.objectVerdict[o] === TP;
    if (duel === "neither") return (d, o) => d < 0 && other.objectVerdict[o] === FN;
    if (!mine) return () => false;
    const classes = store.classes.length + 1; // unknown classes are -1
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

/** Return the description of all active filters, or "". */
probox.filterWords = (store, state) =>
  itemFilters
    .map((filter) => filter.words(store, state))
    .filter(Boolean)
    .join(", ");

/** Return 0 or 1 for each detection and object of result `r`: whether its item passes all filters. */
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

/** Return PDQ, loss, TP, FP and FN of the passing items of each image; PDQ and loss are NaN without items. */
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

// Sort keys of images, ascending; `a` and `b` are sums of the main detector and of its rival.
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
// Sort orders in which images missing from a detection file would come first.
const JUDGING = ["worst", "best", "ahead", "behind", "missed"];

/** Return the current sort order; orders by difference need a rival. */
probox.sortOf = (state) => (DIFFERENCES.includes(state.sort) && probox.rivalOf(state) === null ? "worst" : state.sort);
probox.orderOf = (state) => (DIFFERENCES.includes(state.by) && probox.rivalOf(state) === null ? "missed" : state.by);

// Images without detections that are probably missing from the file; `find_seen_images` in Python has the rule.
const missingImages = (/** @type {Store} */ store, /** @type {State} */ state, /** @type {string} */ sort) => {
  const rival = probox.rivalOf(state);
  const own = store.results[state.main].unseen;
  if (!DIFFERENCES.includes(sort) || rival === null) return own;
  const others = store.results[rival].unseen;
  return own.map((value, image) => value | others[image]);
};

/**
 * Sort rows of images. Images missing from a detection file come late, images without a value last.
 *
 * Ties keep the image order. `sums` and `rivals` are results of `imageSums`. Returns the rows and the number of missing
 * images.
 */
probox.sortImages = (store, state, rows, sums, rivals) => {
  const sort = probox.sortOf(state);
  const value = SORTS[sort](sums, rivals ?? sums); // orders by difference always have a rival
  const key = Float64Array.from({ length: store.count }, (_, i) => value(i));
  const apart =
    JUDGING.includes(sort) && state.unseen === "last" ? missingImages(store, state, sort) : new Uint8Array(store.count);
  const group = (/** @type {number} */ i) => (Number.isNaN(key[i]) ? 2 : apart[i]);
  const sorted = [...rows].sort((i, j) => group(i) - group(j) || key[i] - key[j] || i - j);
  return { rows: sorted, apart: rows.filter((i) => group(i) === 1).length };
};

// Orders of single items: the groups of matches, misses and false positives, and the sign of the sort key.
const sizeRank = (/** @type {number} */ bits) => 31 - Math.clz32(bits || 1);
/** @type {Record<string, { groups: [match: number, miss: number, wrong: number]; sign: number }>} */
const ORDERS = {
  missed: { groups: [1, 0, 2], sign: 1 },
  worst: { groups: [0, 1, 2], sign: 1 },
  best: { groups: [0, 1, 2], sign: -1 },
  score: { groups: [2, 1, 0], sign: 1 },
  ahead: { groups: [0, 0, 1], sign: 1 },
  behind: { groups: [0, 0, 1], sign: 1 },
  number: { groups: [0, 0, 0], sign: 1 },
};
probox.ORDERS = Object.keys(ORDERS);

/**
 * Return at most `most` passing items of some images in the order of the state, and the total number.
 *
 * Misses are sorted by size, matches by the selected quality, false positives by score, all descending by default.
 * Differences are of an object's pPDQ, 0 if it is missed. Items in missing images come last.
 */
probox.itemList = (store, state, { found, there }, most, images) => {
  const by = probox.orderOf(state);
  const { groups, sign } = ORDERS[by];
  const view = store.view(state.main, state.t);
  const number = probox.rivalOf(state);
  const rival = DIFFERENCES.includes(by) && number !== null ? store.view(number, state.t) : null;
  const { detections, pairs } = view.result;
  const apart = by !== "number" && state.unseen === "last" ? missingImages(store, state, by) : null;
  const pPDQ = (/** @type {View} */ one, /** @type {number} */ o) =>
    one.objectVerdict[o] === TP ? one.result.pairs.pPDQ[one.pair[one.objectDetection[o]]] : 0;
  const quality = pairs[state.quality];
  const value = (/** @type {number} */ d, /** @type {number} */ o) => {
    if (by === "number") return 0;
    if (o < 0) return -detections.score[d];
    if (rival) return (by === "ahead" ? -1 : 1) * (pPDQ(view, o) - pPDQ(rival, o));
    return d < 0 ? -sizeRank(store.objects.size[o]) : sign * quality[view.pair[d]];
  };
  // Typed arrays, because there can be hundreds of thousands of items.
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
 * Return the indices of the `most` items of a group with the lowest values, sorted; ties keep their order.
 *
 * @param {{ group: Uint8Array; value: Float64Array }} table
 * @param {number} total
 * @param {number} wanted
 * @param {number} most
 */
function first({ group, value }, total, wanted, most) {
  let count = 0;
  for (let i = 0; i < total; i++) if (group[i] === wanted) count++;
  // Sorting plain numbers first is much faster, and only the shown items are then sorted by index.
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

/** Return the percentage of true positives in each of `bins` equal bins of a quality; the last one includes 1. */
probox.histogram = (view, quality, bins) => {
  const counts = new Array(bins).fill(0);
  const values = view.result.pairs[quality],
    rows = view.right;
  for (const d of rows) counts[Math.min(bins - 1, Math.floor(values[view.pair[d]] * bins))]++;
  return counts.map((n) => (100 * n) / Math.max(rows.length, 1));
};
