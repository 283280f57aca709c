// Small helpers: elements made of text, never of markup; numbers as the tables show them.
const { probox } = window;
const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {Element} T
 * @param {T} element
 * @param {readonly (Properties | Child)[]} parts
 */
function fill(element, parts) {
  for (const part of parts) {
    if (Array.isArray(part)) fill(element, part);
    else if (typeof part === "string" || part instanceof Node) element.append(part);
    else {
      for (const [name, value] of Object.entries(part || {})) {
        if (value === null || value === undefined || value === false) continue;
        if (typeof value === "function") element.addEventListener(name.slice(2), value);
        else element.setAttribute(name, value === true ? "" : String(value));
      }
    }
  }
  return element;
}

/** Make an HTML element of its properties, elements and texts. */
probox.h = (tag, ...parts) => fill(document.createElement(tag), parts);

/** Make an SVG element. */
probox.s = (tag, ...parts) => fill(document.createElementNS(SVG, tag), parts);

/** Return a table's head of one row; headings are texts or elements. */
probox.head = (headings) => {
  const cells = headings.map((one) => (typeof one === "string" ? probox.h("th", { scope: "col" }, one) : one));
  return probox.h("thead", probox.h("tr", cells));
};

/** Return a table's row, its first cell a heading. */
probox.row = (first, ...parts) => probox.h("tr", probox.h("th", { scope: "row" }, first), ...parts);

/** Return a table's cell with a number as it is, if there is one, and as it is shown. */
probox.cell = (value, ...parts) => probox.h("td", { "data-value": Number.isFinite(value) ? value : null }, ...parts);

/** Put new content into a table; the button that had the focus keeps it, and its key is returned. */
probox.fillTable = (table, ...content) => {
  const focused = probox.focusIn(table)?.dataset.key;
  table.replaceChildren(...content);
  if (focused) [...table.querySelectorAll("button")].find((one) => one.dataset.key === focused)?.focus();
  return focused;
};

// Scripts ask for what the page has; a test compares ids.
probox.byId = (id) => /** @type {any} */ (document.getElementById(id));

/** Return whether a key was pressed with another that makes it a command of the browser or the system. */
probox.isCommand = (event) => event.ctrlKey || event.metaKey || event.altKey;

/** Show a control with its label, or hide both; no control of the page is without one. */
probox.showControl = (id, shown) => {
  const label = /** @type {HTMLLabelElement} */ (probox.byId(id).closest("label"));
  label.hidden = !shown;
};

/** Return the element in another one that has the focus; null if none has. */
probox.focusIn = (element) => {
  const { activeElement } = document;
  return activeElement instanceof HTMLElement && element.contains(activeElement) ? activeElement : null;
};

/** Show a quality in per cent, or a dash. */
probox.percent = (value, digits = 2) => (Number.isFinite(value) ? (100 * value).toFixed(digits) : "–");

/** Return a name of at most so many characters: of a longer one its beginning and its end, which tell it from others. */
probox.shortName = (name, most = 18) =>
  name.length <= most
    ? name
    : `${name.slice(0, Math.max(1, Math.ceil(most / 2) - 1))}…${name.slice(name.length - Math.floor(most / 2))}`;

const grouped = new Intl.NumberFormat("en-US");
probox.count = (value) => grouped.format(value);

// Every browser draws in two dimensions, and no canvas of the page is asked for anything else.
probox.drawing = (canvas, settings) => /** @type {Context} */ (canvas.getContext("2d", settings));

/** Return an element's width inside; asked anew only when it changes, since asking makes the browser lay out the page. */
const widths = new WeakMap();
const watcher =
  globalThis.ResizeObserver &&
  new ResizeObserver((entries) => {
    for (const { target } of entries) widths.delete(target);
  });
probox.widthOf = (element) => {
  if (!widths.has(element)) {
    widths.set(element, element.clientWidth);
    watcher.observe(element);
  }
  return widths.get(element);
};

/** Say something for a few seconds, also to screen readers. */
let saying = 0,
  announcing = 0;
probox.say = (text) => {
  const place = probox.byId("message");
  // What is open over the page would hide what is said below it.
  ([...document.querySelectorAll("dialog[open]")].pop() || document.body).append(place);
  place.textContent = text;
  place.hidden = false;
  clearTimeout(saying);
  saying = setTimeout(() => {
    place.hidden = true;
  }, 4000);
};

/** Tell screen readers, once nothing has changed for a moment: a slider that moves is not to be talked over. */
probox.announce = (text) => {
  clearTimeout(announcing);
  announcing = setTimeout(() => {
    const place = probox.byId("spoken");
    ([...document.querySelectorAll("dialog[open]")].pop() || document.body).append(place);
    if (place.textContent !== text) place.textContent = text;
  }, 700);
};

/** Put text on the clipboard, also where the page may not use the modern way. */
probox.copy = async (text, what) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = probox.h("textarea", { class: "offscreen", "aria-hidden": "true" });
    area.value = text;
    const host = document.querySelector("dialog[open]") || document.body;
    host.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  probox.copied = text;
  probox.say(`${what} copied`);
};

/** Save text as a file. */
probox.download = (name, text, type = "text/csv") => {
  const link = probox.h("a", {
    download: name,
    href: URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` })),
  });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  probox.downloaded = { name, text };
  probox.say(`${name} saved`);
};

/** Return the value of a colour that the style sheet defines; asked once, until `forgetColours`. */
const colours = new Map();
probox.css = (name) => {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return colours.get(name);
};
probox.forgetColours = () => colours.clear();

/** Return the name of a detector's colour in the style sheet, and its value. */
const lineName = (/** @type {number} */ number) => `--line-${number % probox.constants.LINES}`;
probox.line = (number) => `var(${lineName(number)})`;
probox.lineColour = (number) => probox.css(lineName(number));
probox.swatch = (number) => probox.h("i", { class: "swatch", style: `background:${probox.line(number)}` });

/** Do small works a few milliseconds per frame, so that the page stays smooth; the newest first. */
/** @type {(() => void)[]} */
const works = [];
const doSome = () => {
  const end = performance.now() + 7;
  try {
    while (works.length && performance.now() < end) works.pop()?.();
  } finally {
    // whatever fails, the others are done
    if (works.length) requestAnimationFrame(doSome);
  }
};
probox.later = (work) => {
  works.push(work);
  if (works.length === 1) requestAnimationFrame(doSome);
};

/** Call at most once per frame. */
probox.eachFrame = (work) => {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      work();
    });
  };
};
