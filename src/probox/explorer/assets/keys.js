// The list of keys, on ? or by a button.
"use strict";
(() => {
  const { probox } = window;
  const { h, byId } = probox;

  /** Keys as [keys, what they do, where]; whoever adds one adds it here. */
  probox.keys = [
    ["?", "this list", "anywhere"],
    ["Tab, Shift Tab", "go to the next, the one before", "anywhere"],
    ["Enter, Space", "press what has the focus: sort a table, choose a class, open an image", "anywhere"],
    ["← →", "move the label threshold", "threshold"],
    ["← →", "look at the values of a chart", "charts"],
    ["Shift ← →, Esc", "choose a range, give it up", "charts"],
    ["← → ↑ ↓, Page Up, Page Down, Home, End", "move among the images", "gallery"],
    ["Enter", "open the image", "gallery"],
    ["← →, p n", "the image before, the next", "large view"],
    ["1 2 3 4 5 6", "photo, masks, boxes, ellipses, heatmap, labels", "large view"],
    ["v", "a light veil over the photo", "large view"],
    ["s", "samples: boxes that the detector thinks might be", "large view"],
    ["c", "another detector beside this one", "large view"],
    ["+ − 0", "zoom in, out, whole image", "large view"],
    ["Shift ← → ↑ ↓", "move the part that is seen, when zoomed", "large view"],
    ["Esc", "back", "large view"],
  ];

  probox.showKeys = () => {
    const places = [...new Set(probox.keys.map(([, , where]) => where))];
    byId("key-list").replaceChildren(
      ...places.map((place) =>
        h(
          "section",
          {},
          h("h3", {}, place),
          h(
            "dl",
            {},
            probox.keys
              .filter(([, , where]) => where === place)
              .map(([keys, what]) => [
                h(
                  "dt",
                  {},
                  keys.split(", ").map((part, i) => [i ? ", " : null, h("kbd", {}, part)]),
                ),
                h("dd", {}, what),
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
      if (event.key !== "?" || writing || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      if (byId("keys").open) byId("keys").close();
      else probox.showKeys();
    });
  });
})();
