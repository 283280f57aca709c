// Lists of image ids as short text for links.
const { probox } = window;
const { h, byId } = probox;

/** Return ids as ascending differences in base 36, which is short: "5.2.z" is 5, 7, 42. */
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

/** Return the set of ids of a text, or undefined if the text is invalid. */
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

// Tags: one flag per image, stored in the link and exported as a list of ids.

const LONG = 2000; // characters; some mail and chat programs truncate longer links

// The state contains the text, because it is compared and written into the address at every change.
probox.field("tags", "", "tags", (text) => (probox.unpackIds(text) ? text : undefined));
probox.field("tagged", "", "tagged", probox.oneOf(["yes", "no"]));

let known = { text: "", ids: new Set() };

/** Return the ids of tagged images. */
probox.taggedIds = (state) => {
  if (known.text !== state.tags) known = { text: state.tags, ids: probox.unpackIds(state.tags) || new Set() };
  return known.ids;
};

/** Add or remove the tag of an image. */
probox.toggleTag = (id) => {
  const ids = new Set(probox.taggedIds(probox.state()));
  if (!ids.delete(id)) ids.add(id);
  probox.update({ tags: probox.packIds(ids) });
  probox.say(`${ids.has(id) ? "tagged" : "tag removed"}; ${ids.size} tagged`);
};

/** Tag many images at once; the back button undoes it. */
probox.tagImages = (ids) => {
  const all = new Set([...probox.taggedIds(probox.state()), ...ids]);
  probox.update({ tags: probox.packIds(all) }, true);
  probox.say(`${probox.count(all.size)} tagged; use the browser's back button to undo`);
};

/**
 * Return the text of the list: one id per line, in ascending order.
 *
 * @param {State} state
 */
const idList = (state) => [...probox.taggedIds(state)].sort((a, b) => a - b).join("\n");

/** @type {Work} */
function renderTags(store, state) {
  const ids = probox.taggedIds(state);
  byId("tags").hidden = !ids.size;
  const unknown = [...ids].filter((id) => !store.rowOfImage.has(id)).length;
  byId("tag-count").textContent = [
    `${probox.count(ids.size)} tagged`,
    unknown ? `${probox.count(unknown)} of them not in this report` : "",
    state.tags.length > LONG
      ? `the link has ${probox.count(location.href.length)} characters, too many for some programs; save the ids as well`
      : "",
  ]
    .filter(Boolean)
    .join(", ");
  const here = state.image !== null && ids.has(state.image);
  const button = byId("tag");
  button.setAttribute("aria-pressed", String(here));
  button.textContent = here ? "★ Tagged" : "☆ Tag";
}

probox.follow(["tags", "image"], renderTags);

probox.onStart(() => {
  const current = probox.state;
  const tagShown = () => {
    const { image } = current();
    if (image !== null) probox.toggleTag(image);
  };
  byId("link").before(
    h(
      "button",
      { type: "button", id: "tag", title: "tag this image (t)", "aria-pressed": "false", onclick: tagShown },
      "☆ Tag",
    ),
  );
  byId("viewer").addEventListener("keydown", (event) => {
    if (
      event.key !== "t" ||
      probox.isCommand(event) ||
      (event.target instanceof Element && event.target.matches("select, input:not([type=checkbox])"))
    )
      return;
    event.preventDefault();
    tagShown();
  });
  for (const where of ["gallery", "large view"]) probox.keys.push(["t", "tag the image, or remove the tag", where]);
  byId("tag-copy").addEventListener("click", () =>
    probox.copy(idList(current()), `${probox.count(probox.taggedIds(current()).size)} ids`),
  );
  byId("tag-save").addEventListener("click", () =>
    probox.download("tagged.txt", `${idList(current())}\n`, "text/plain"),
  );
  byId("tag-clear").addEventListener("click", () => {
    probox.update({ tags: "", tagged: "" }, true);
    probox.say("tags removed; use the browser's back button to undo");
  });
});
