// The line of sections, and going to one: below the bar, which stays on top, and without touching the address, which
// holds the state.
"use strict";
(() => {
  const probox = (window.probox = window.probox || {});
  const { h, byId } = probox;

  /** Go to a section, given as an element or by its id: its beginning comes into sight, and it has the focus. */
  probox.jump = (to) => {
    const section = typeof to === "string" ? byId(to) : to;
    if (!section.hasAttribute("tabindex")) section.setAttribute("tabindex", "-1");
    section.focus({ preventScroll: true });
    section.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth" });
  };

  /** Return the section that is read: the last that begins above a line a little below the bar. */
  function sectionInSight(sections) {
    const line = byId("bar").getBoundingClientRect().bottom + Math.min(90, 0.25 * window.innerHeight);
    return sections.filter((section) => section.getBoundingClientRect().top <= line).pop() || sections[0];
  }

  /** Move the line of sections, which is wider than a phone, so that a link is in its middle. */
  function keepInSight(link) {
    const line = byId("sections"),
      from = line.getBoundingClientRect(),
      to = link.getBoundingClientRect();
    line.scrollLeft += (to.left + to.right - from.left - from.right) / 2;
  }

  probox.onStart(() => {
    const sections = [...document.querySelectorAll("main > section")];
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
          section.dataset.nav || section.querySelector("h2").textContent,
        ),
      ]),
    );
    const offer = () => {
      for (const [section, link] of links) link.hidden = section.hidden;
    };
    offer();
    new MutationObserver(offer).observe(document.querySelector("main"), { subtree: true, attributeFilter: ["hidden"] });
    byId("sections").append(...links.values());
    document.querySelector(".skip").addEventListener("click", (event) => {
      event.preventDefault();
      probox.jump("gallery");
    });
    // Jumps end below the bar, however high it is.
    new ResizeObserver(() =>
      document.documentElement.style.setProperty("--bar", `${byId("bar").offsetHeight}px`),
    ).observe(byId("bar"));
    let current = null;
    const mark = probox.eachFrame(() => {
      const now = sectionInSight(sections.filter((section) => !section.hidden));
      if (now === current) return;
      current = now;
      keepInSight(links.get(now));
      for (const [section, link] of links) {
        if (section === now) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    });
    window.addEventListener("scroll", mark, { passive: true });
    mark();
  });
})();
