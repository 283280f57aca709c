// Printing: light colours, and charts that fit whatever the paper's width is.
"use strict";
(() => {
  const { probox } = window;

  /** @type {string | null} */
  let theme = null; // what the page had before; null while nothing is printed

  function before() {
    if (theme !== null) return;
    theme = document.documentElement.dataset.theme || "";
    document.documentElement.dataset.theme = "light";
    probox.redraw();
    probox.settle(); // paper does not wait for rest, nor for frames
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
})();
