// The line of sections, and going to one: below the bar, which stays on top, and without touching the address, which
// holds the state.
"use strict";
(() => {
  const { probox } = window;
  const { h, byId } = probox;

  /** Go to a section, given as an element or by its id: its beginning comes into sight, and it has the focus. */
  probox.jump = (to) => {
    const section = typeof to === "string" ? byId(to) : to;
    if (!section.hasAttribute("tabindex")) section.setAttribute("tabindex", "-1");
    section.focus({ preventScroll: true });
    section.scrollIntoView(); // at once: on a long way the page would change under a smooth one
  };

  /** Return the section that is read: the last that begins above a line a little below the bar. */
  function sectionInSight(/** @type {HTMLElement[]} */ sections) {
    const line = byId("bar").getBoundingClientRect().bottom + Math.min(90, 0.25 * window.innerHeight);
    return sections.filter((section) => section.getBoundingClientRect().top <= line).pop() || sections[0];
  }

  /** Move the line of sections, which is wider than a phone, so that a link is in its middle. */
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
    // Jumps end below the bar, however high it is.
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
})();
