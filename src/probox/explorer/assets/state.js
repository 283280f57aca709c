// The state of the page, stored in the address, and functions that run when it changes.
//
// Each script declares its parts of the state with `field` and its functions with `follow`.
const { probox } = window;

/** @type {Map<Key, Field>} */
const fields = new Map();
/** @type {Follower[]} */
const works = [];
/** @type {((store: Store) => void)[]} */
const starts = [];
// Scripts declare all fields before the state is read, which the types rely on.
const defaults = /** @type {State} */ ({});
let state = /** @type {State} */ ({});

/**
 * Declare a part of the state.
 *
 * `word` is its name in the address, `parse(text, store)` returns its value, or undefined for invalid text, and
 * `format(value, store)` returns the text.
 */
probox.field = (key, initial, word, parse, format = String) => {
  fields.set(key, { word, parse, format });
  defaults[key] = state[key] = initial;
};

/** Parsers: one of some words, a number within limits, an integer within limits. */
probox.oneOf = (words) => (text) => words.find((word) => word === text);
probox.numberIn = (low, high) => (text) =>
  text !== "" && Number(text) >= low && Number(text) <= high ? Number(text) : undefined;
probox.wholeIn = (low, high) => (text) =>
  /^-?\d+$/.test(text) && Number(text) >= low && Number(text) <= high ? Number(text) : undefined;

probox.state = () => state;

/** Return the default of a part of the state. */
probox.initial = (key) => defaults[key];

/**
 * Call `work(store, state)` at the start and whenever one of `keys` changes.
 *
 * `when`: "now"; "frame", in the next frame if the threshold changed, so that its slider stays responsive; "rest", after
 * a pause, for slow work. Work for an element `id` outside of the window waits for a pause as well.
 */
probox.follow = (keys, work, when = "now", id = null) => works.push({ keys, work, when, id });

/**
 * Connect a list to a part of the state. `choices` are added to the list: texts, or pairs of a value and a text. An empty
 * value means null.
 *
 * `change(value)` returns the change of the state, by default of this part; `shown(state)` returns the selected value, by
 * default this part. Call it at the start only.
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

/** Connect a checkbox to a part of the state with two values. */
probox.toggle = (id, key, on) => {
  const box = probox.byId(id);
  box.addEventListener("change", () => probox.update({ [key]: box.checked ? on : defaults[key] }));
  probox.follow([key], (_, now) => {
    box.checked = now[key] === on;
  });
};

/** Call `work(store)` once, before the first drawing. */
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

/** Return the state as text for the address. */
function written() {
  const words = new URLSearchParams();
  for (const [key, { word, format }] of fields) {
    if (state[key] !== defaults[key]) words.set(word, format(state[key], probox.store));
  }
  return words.toString();
}

/** Change the state; `push` adds an entry to the browser's history. */
probox.update = (changes, push = false) => {
  const before = state;
  state = { ...state, ...changes };
  const hash = written();
  const url = hash ? `#${hash}` : location.pathname + location.search;
  try {
    if (push) history.pushState(null, "", url);
    else history.replaceState(null, "", url);
  } catch {
    /* some browsers limit changes per second, and a page may have no address */
  }
  render(before);
};

window.addEventListener("popstate", () => {
  const before = state;
  state = read();
  render(before);
});

// Cards and sections in or near the window.
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
probox.resting = true; // whether no work waits for a pause

// One function at a time, so that a moved slider waits for at most one of them.
function rest() {
  const next = works.find((one) => atRest.has(one));
  if (next) {
    atRest.delete(next);
    timer = setTimeout(rest, 0); // also after an error
    next.work(probox.store, state);
  } else probox.resting = true;
}

/** Run all waiting work at once. */
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

/** Redraw everything, for example in other colours. */
probox.redraw = () => {
  probox.forgetColours();
  render(null);
};

/** Start the page; the index file calls this. */
probox.start = (index) => {
  probox.store = new probox.Store(index);
  for (const work of starts) work(probox.store);
  state = read();
  watch();
  render(null);
  document.documentElement.dataset.ready = "true";
};
