// The page's frame: heading, how it was measured, links to what one sees, light and dark.
"use strict";
(() => {
  const { probox } = window;
  const { h, byId } = probox;

  /** @param {string} name */
  function setTheme(name) {
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
    byId("about").replaceChildren(
      ...store.results.map((result) => h("li", {}, h("b", {}, result.name), `: ${result.about}`)),
    );
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
        if (window.innerWidth === width) return; // a phone's bars come and go
        width = window.innerWidth;
        probox.redraw();
      }),
    );
  });
})();
