// Helpers for elements, numbers, the clipboard and files. Elements are made of text, never of markup.
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

/** Make an HTML element from properties, elements and texts. */
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

/** Return a table's cell with its exact number, for exports, and its content. */
probox.cell = (value, ...parts) => probox.h("td", { "data-value": Number.isFinite(value) ? value : null }, ...parts);

/** Replace a table's content, keep the focus on the same button, and return that button's key. */
probox.fillTable = (table, ...content) => {
  const focused = probox.focusIn(table)?.dataset.key;
  table.replaceChildren(...content);
  if (focused) [...table.querySelectorAll("button")].find((one) => one.dataset.key === focused)?.focus();
  return focused;
};

// A test checks that every requested id exists.
probox.byId = (id) => /** @type {any} */ (document.getElementById(id));

/** Return whether a key is part of a shortcut of the browser or the system. */
probox.isCommand = (event) => event.ctrlKey || event.metaKey || event.altKey;

/** Show a control with its label, or hide both. Every control of the page has a label. */
probox.showControl = (id, shown) => {
  const label = /** @type {HTMLLabelElement} */ (probox.byId(id).closest("label"));
  label.hidden = !shown;
};

/** Return the focused element inside another one; null if there is none. */
probox.focusIn = (element) => {
  const { activeElement } = document;
  return activeElement instanceof HTMLElement && element.contains(activeElement) ? activeElement : null;
};

/** Return a fraction in percent without the sign, or a dash. */
probox.percent = (value, digits = 2) => (Number.isFinite(value) ? (100 * value).toFixed(digits) : "–");

/** Return a name of at most `most` characters. Longer ones keep their start and end, where names differ. */
probox.shortName = (name, most = 18) =>
  name.length <= most
    ? name
    : `${name.slice(0, Math.max(1, Math.ceil(most / 2) - 1))}…${name.slice(name.length - Math.floor(most / 2))}`;

const grouped = new Intl.NumberFormat("en-US");
probox.count = (value) => grouped.format(value);

// A 2d context is never null, because no canvas of the page has another context.
probox.drawing = (canvas, settings) => /** @type {Context} */ (canvas.getContext("2d", settings));

/** Return an element's inner width. The cache avoids a layout of the page for each request. */
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

/** Show a message for a few seconds, also to screen readers. */
let messageTimer = 0,
  announcementTimer = 0;
probox.say = (text) => {
  const place = probox.byId("message");
  // An open dialog would cover a message outside of it.
  ([...document.querySelectorAll("dialog[open]")].pop() || document.body).append(place);
  place.textContent = text;
  place.hidden = false;
  clearTimeout(messageTimer);
  messageTimer = setTimeout(() => {
    place.hidden = true;
  }, 4000);
};

/** Send text to screen readers after a pause, so that a moving slider does not interrupt itself. */
probox.announce = (text) => {
  clearTimeout(announcementTimer);
  announcementTimer = setTimeout(() => {
    const place = probox.byId("spoken");
    ([...document.querySelectorAll("dialog[open]")].pop() || document.body).append(place);
    if (place.textContent !== text) place.textContent = text;
  }, 700);
};

/** Copy text to the clipboard, also without permission for the clipboard API. */
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

/** Return the value of a colour of the style sheet, cached until `forgetColours`. */
const colours = new Map();
probox.css = (name) => {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return colours.get(name);
};
probox.forgetColours = () => colours.clear();

/** Return the name and the value of a detector's colour in the style sheet. */
const lineName = (/** @type {number} */ number) => `--line-${number % probox.constants.LINES}`;
probox.line = (number) => `var(${lineName(number)})`;
probox.lineColour = (number) => probox.css(lineName(number));
probox.swatch = (number) => probox.h("i", { class: "swatch", style: `background:${probox.line(number)}` });

/** Run small tasks for a few milliseconds per frame, newest first, so that the page stays responsive. */
/** @type {(() => void)[]} */
const works = [];
const doSome = () => {
  const end = performance.now() + 7;
  try {
    while (works.length && performance.now() < end) works.pop()?.();
  } finally {
    // also after an error
    if (works.length) requestAnimationFrame(doSome);
  }
};
probox.later = (work) => {
  works.push(work);
  if (works.length === 1) requestAnimationFrame(doSome);
};

/** Return a function that calls `work` at most once per frame. */
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
