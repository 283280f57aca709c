// The list of keys, opened by ? or a button.
const { probox } = window;
const { h, byId } = probox;

/** Keys as [keys, action, place]; the list of keys shows all entries. */
probox.keys = [
  ["?", "list of keys", "anywhere"],
  ["Tab, Shift Tab", "next control, previous control", "anywhere"],
  ["Enter, Space", "activate the control in focus: sort a table, select a class, open an image", "anywhere"],
  ["← →", "move the label threshold", "threshold"],
  ["← →", "move the cursor of a chart", "charts"],
  ["Shift ← →, Esc", "select a range, clear it", "charts"],
  ["← → ↑ ↓, Page Up, Page Down, Home, End", "move between images", "gallery"],
  ["Enter", "open the image", "gallery"],
  ["← →, p n", "previous image, next image", "large view"],
  ["1 2 3 4 5 6", "photo, masks, boxes, ellipses, heatmap, labels", "large view"],
  ["v", "lighten the photo", "large view"],
  ["s", "samples: boxes drawn from the corner Gaussians", "large view"],
  ["c", "show another detector beside this one", "large view"],
  ["+ − 0", "zoom in, zoom out, whole image", "large view"],
  ["Shift ← → ↑ ↓", "move the visible part of a zoomed image", "large view"],
  ["Esc", "close the image", "large view"],
];

probox.showKeys = () => {
  const places = [...new Set(probox.keys.map(([, , where]) => where))];
  byId("key-list").replaceChildren(
    ...places.map((place) =>
      h(
        "section",
        h("h3", place),
        h(
          "dl",
          probox.keys
            .filter(([, , where]) => where === place)
            .map(([keys, what]) => [
              h(
                "dt",
                keys.split(", ").map((part, i) => [i ? ", " : null, h("kbd", part)]),
              ),
              h("dd", what),
            ]),
        ),
      ),
    ),
  );
  if (!byId("keys").open) byId("keys").showModal();
};

probox.onStart(() => {
  byId("show-keys").addEventListener("click", probox.showKeys);
  byId("close-keys").addEventListener("click", () => byId("keys").close());
  document.addEventListener("keydown", (event) => {
    const writing =
      event.target instanceof Element &&
      event.target.matches("textarea, select, input:not([type=checkbox]):not([type=range])");
    if (event.key !== "?" || writing || probox.isCommand(event)) return;
    event.preventDefault();
    if (byId("keys").open) byId("keys").close();
    else probox.showKeys();
  });
});

// Links to sections. They do not change the address, which contains the state, and stop below the fixed bar.

/** Scroll to a section, given as an element or by its id, and move the focus to it. */
probox.jump = (to) => {
  const section = typeof to === "string" ? byId(to) : to;
  if (!section.hasAttribute("tabindex")) section.setAttribute("tabindex", "-1");
  section.focus({ preventScroll: true });
  section.scrollIntoView(); // not smooth: the page may change its height during a long scroll
};

/** Return the current section: the last one that starts above a line a little below the bar. */
function sectionInSight(/** @type {HTMLElement[]} */ sections) {
  const line = byId("bar").getBoundingClientRect().bottom + Math.min(90, 0.25 * window.innerHeight);
  return sections.filter((section) => section.getBoundingClientRect().top <= line).pop() || sections[0];
}

/** Centre a link in the line of sections, which is wider than a phone. */
function keepInSight(/** @type {HTMLElement} */ link) {
  const line = byId("sections"),
    from = line.getBoundingClientRect(),
    to = link.getBoundingClientRect();
  line.scrollLeft += (to.left + to.right - from.left - from.right) / 2;
}

probox.onStart(() => {
  const all = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("main > section"));
  const sections = [...all];
  const links = new Map(
    sections.map((section) => [
      section,
      h(
        "a",
        {
          href: "#",
          onclick: (event) => {
            event.preventDefault();
            probox.jump(section);
          },
        },
        section.querySelector("h2")?.textContent,
      ),
    ]),
  );
  const offer = () => {
    for (const [section, link] of links) link.hidden = section.hidden;
  };
  offer();
  const main = /** @type {HTMLElement} */ (document.querySelector("main"));
  new MutationObserver(offer).observe(main, { subtree: true, attributeFilter: ["hidden"] });
  byId("sections").append(...links.values());
  for (const link of document.querySelectorAll(".skip, #to-gallery"))
    link.addEventListener("click", (event) => {
      event.preventDefault();
      probox.jump("gallery");
    });
  // The bar has a variable height, and jumps end below it.
  new ResizeObserver(() =>
    document.documentElement.style.setProperty("--bar", `${byId("bar").offsetHeight}px`),
  ).observe(byId("bar"));
  /** @type {HTMLElement | null} */
  let current = null;
  const mark = probox.eachFrame(() => {
    const now = sectionInSight(sections.filter((section) => !section.hidden));
    if (now === current) return;
    current = now;
    const here = links.get(now);
    if (here) keepInSight(here);
    for (const [section, link] of links) {
      if (section === now) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  });
  window.addEventListener("scroll", mark, { passive: true });
  mark();
});

// Printing: light colours, and charts that scale to the paper's width.

/** @type {string | null} */
let theme = null; // theme before printing; null while nothing is printed

function before() {
  if (theme !== null) return;
  theme = document.documentElement.dataset.theme || "";
  document.documentElement.dataset.theme = "light";
  probox.redraw();
  probox.settle(); // printing does not wait for delayed work
  probox.paintForPaper(true);
  for (const svg of document.querySelectorAll(".chart svg")) {
    if (!svg.hasAttribute("viewBox"))
      svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
  }
}

function after() {
  if (theme === null) return;
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  theme = null;
  probox.paintForPaper(false);
  probox.redraw();
}

probox.onStart(() => {
  window.addEventListener("beforeprint", before);
  window.addEventListener("afterprint", after);
  matchMedia("print").addEventListener("change", (event) => (event.matches ? before() : after()));
});

// The page's frame: heading, settings, link to the current view, light and dark.

function setTheme(/** @type {string} */ name) {
  document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem("probox-theme", name);
  } catch {
    /* a page from disk may have no storage */
  }
}

probox.onStart((store) => {
  try {
    const theme = localStorage.getItem("probox-theme");
    if (theme) document.documentElement.dataset.theme = theme;
  } catch {
    /* see setTheme */
  }
  byId("about").replaceChildren(...store.results.map((result) => h("li", h("b", result.name), `: ${result.about}`)));
  const told = store.results.filter((result) => result.comparability);
  byId("comparability").textContent = told.map((result) => `${result.name}: ${result.comparability}.`).join(" ");
  byId("comparability").toggleAttribute("hidden", !told.length);
  byId("counts").textContent =
    `${probox.count(store.count)} images, ${probox.count(store.objects.class.length)} objects`;
  byId("share").addEventListener("click", () => probox.copy(location.href, "link"));
  byId("theme").addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
    setTheme(now === "dark" ? "light" : "dark");
    probox.redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", probox.redraw);
  let width = window.innerWidth;
  window.addEventListener(
    "resize",
    probox.eachFrame(() => {
      if (window.innerWidth === width) return; // the bars of a phone's browser appear and disappear
      width = window.innerWidth;
      probox.redraw();
    }),
  );
});
