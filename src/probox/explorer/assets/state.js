// The state: what is shown, kept in the address so that a link brings it back, and what follows when it changes.
//
// Whoever adds something to see declares its part of the state (`field`) and what to do when a part changes (`follow`);
// nothing else has to know of it.
const { probox } = window;

/** @type {Map<Key, Field>} */
const fields = new Map();
/** @type {Follower[]} */
const works = [];
/** @type {((store: Store) => void)[]} */
const starts = [];
// Both are empty until scripts declare their fields, which they do before anybody asks for the state.
const defaults = /** @type {State} */ ({});
let state = /** @type {State} */ ({});

/**
 * Declare a part of the state.
 *
 * `word` is its name in the address, `parse(text, store)` gives its value, or undefined where the text makes no
 * sense, and `format(value, store)` gives the text back.
 */
probox.field = (key, initial, word, parse, format = String) => {
  fields.set(key, { word, parse, format });
  defaults[key] = state[key] = initial;
};

/** Ways to parse: one of some words, a number within limits, anything. */
probox.oneOf = (words) => (text) => words.find((word) => word === text);
probox.numberIn = (low, high) => (text) =>
  text !== "" && Number(text) >= low && Number(text) <= high ? Number(text) : undefined;
probox.wholeIn = (low, high) => (text) =>
  /^-?\d+$/.test(text) && Number(text) >= low && Number(text) <= high ? Number(text) : undefined;

probox.state = () => state;

/** Return the default of a part of the state. */
probox.initial = (key) => defaults[key];

/**
 * Do `work(store, state)` whenever one of `keys` changes, and at the start.
 *
 * `when`: "now"; "frame", in the next frame if the threshold changed, so that dragging its slider stays smooth;
 * "rest", once nothing has changed for a moment, for what takes long. Where `id` names an element, and the card or
 * section around it is out of sight, the work waits for rest too.
 */
probox.follow = (keys, work, when = "now", id = null) => works.push({ keys, work, when, id });

/**
 * Keep a list and a part of the state the same: `choices` join the list, words or pairs of
 * a value and words; its empty value stands for null.
 *
 * What is chosen changes the state by `change(value)`, by default that part alone; `shown(state)` is what the list
 * shows, by default that part. Scripts call it at the start.
 */
probox.choice = (id, key, choices = [], options = {}) => {
  const { change = (/** @type {unknown} */ value) => ({ [key]: value }) } = options;
  const { shown = (/** @type {State} */ now) => now[key] } = options;
  const list = probox.byId(id);
  for (const one of choices) {
    const [value, text] = typeof one === "string" ? [one, one] : one;
    list.append(probox.h("option", { value: String(value) }, text));
  }
  list.addEventListener("change", () => {
    const { value } = list;
    probox.update(change(typeof defaults[key] === "string" ? value : value === "" ? null : Number(value)));
  });
  probox.follow([...fields.keys()], (_, now) => {
    list.value = String(shown(now) ?? "");
  });
};

/** Keep a box to tick and a part of the state the same, which has one of two words. */
probox.toggle = (id, key, on) => {
  const box = probox.byId(id);
  box.addEventListener("change", () => probox.update({ [key]: box.checked ? on : defaults[key] }));
  probox.follow([key], (_, now) => {
    box.checked = now[key] === on;
  });
};

/** Do `work(store)` once, before anything is drawn. */
probox.onStart = (work) => starts.push(work);

function read() {
  const words = new URLSearchParams(location.hash.slice(1));
  const next = { ...defaults };
  for (const [key, { word, parse }] of fields) {
    const text = words.get(word);
    if (text !== null) Object.assign(next, { [key]: parse(text, probox.store) ?? defaults[key] });
  }
  return next;
}

/** Return the part of the address that brings the state back. */
function written() {
  const words = new URLSearchParams();
  for (const [key, { word, format }] of fields) {
    if (state[key] !== defaults[key]) words.set(word, format(state[key], probox.store));
  }
  return words.toString();
}

/** Change the state; `push` makes a step that the browser's back button undoes. */
probox.update = (changes, push = false) => {
  const before = state;
  state = { ...state, ...changes };
  const hash = written();
  const url = hash ? `#${hash}` : location.pathname + location.search;
  try {
    if (push) history.pushState(null, "", url);
    else history.replaceState(null, "", url);
  } catch {
    /* too many changes a second for some browsers, or a page without an address */
  }
  render(before);
};

window.addEventListener("popstate", () => {
  const before = state;
  state = read();
  render(before);
});

// What is in sight, or nearly.
const seen = new Set();
const placeOf = (/** @type {string} */ id) => probox.byId(id)?.closest(".card, section");
function watch() {
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) seen.add(target);
        else seen.delete(target);
      }
    },
    { rootMargin: "150px" },
  );
  for (const place of new Set(works.map(({ id }) => id && placeOf(id)))) if (place) watcher.observe(place);
}

/** @type {Set<Follower>} */
const inFrame = new Set();
/** @type {Set<Follower>} */
const atRest = new Set();
const doAll = (/** @type {Set<Follower>} */ waiting) => {
  const due = works.filter((one) => waiting.has(one));
  waiting.clear();
  for (const { work } of due) work(probox.store, state);
};
const frame = probox.eachFrame(() => doAll(inFrame));
let timer = 0;
probox.resting = true; // whether all that waits for rest is done

// One work at a time, so that whoever moves the slider again waits for one of them at most.
function rest() {
  const next = works.find((one) => atRest.has(one));
  if (next) {
    atRest.delete(next);
    timer = setTimeout(rest, 0); // also if the work fails
    next.work(probox.store, state);
  } else probox.resting = true;
}

/** Do at once all that waits. */
probox.settle = () => {
  clearTimeout(timer);
  doAll(inFrame);
  doAll(atRest);
  probox.resting = true;
};

function render(/** @type {State | null} */ before) {
  const changed = new Set([...fields.keys()].filter((key) => !before || before[key] !== state[key]));
  /** @type {Follower[]} */
  const now = [];
  let frames = false,
    rests = false;
  for (const one of works) {
    if (!one.keys.some((key) => changed.has(key))) continue;
    const hidden = before && one.id && !seen.has(placeOf(one.id));
    if (one.when === "rest" || hidden) {
      atRest.add(one);
      rests = true;
    } else if (one.when === "frame" && changed.has("t")) {
      inFrame.add(one);
      frames = true;
    } else now.push(one);
  }
  for (const { work } of now) work(probox.store, state);
  if (frames) frame();
  if (rests) {
    probox.resting = false;
    clearTimeout(timer);
    timer = setTimeout(rest, 180);
  }
}

/** Draw everything anew, say in other colours. */
probox.redraw = () => {
  probox.forgetColours();
  render(null);
};

/** Called by the index file. */
probox.start = (index) => {
  probox.store = new probox.Store(index);
  for (const work of starts) work(probox.store);
  state = read();
  watch();
  render(null);
  document.documentElement.dataset.ready = "true";
};
