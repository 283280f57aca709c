// Lists of image ids as a short text, for links.
"use strict";
(() => {
  const { probox } = window;

  /** Write ids in ascending order as steps to base 36, which is short for many of them: "5.2.z" is 5, 7, 42. */
  probox.packIds = (ids) => {
    let before = 0;
    return [...ids]
      .sort((a, b) => a - b)
      .map((id) => {
        const step = id - before;
        before = id;
        return step.toString(36);
      })
      .join(".");
  };

  /** Return the set of ids that a text stands for, or undefined if it stands for none. */
  probox.unpackIds = (text) => {
    if (!/^-?[0-9a-z]+(\.[0-9a-z]+)*$/.test(text)) return undefined;
    let id = 0;
    const ids = new Set();
    for (const step of text.split(".")) {
      id += parseInt(step, 36);
      ids.add(id);
    }
    return [...ids].every(Number.isSafeInteger) ? ids : undefined;
  };
})();
