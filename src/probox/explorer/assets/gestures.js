// A range of a chart's x axis, selected by dragging or with keys.
const { probox } = window;
const { s } = probox;

/**
 * Make a range selectable in a chart's SVG.
 *
 * The ends are multiples of `brushStep`. `brush` is the current range or null, and `onBrush` is called with a new one.
 * `x` and `back` convert a value to pixels and back; `cursor()` returns the position of the cross-hair.
 */
probox.brushOf = (svg, { brush, brushStep, onBrush, x, back, top, bottom, cursor, xRange: [first, last], xLabel }) => {
  const step = brushStep || (last - first) / 100;
  const steps = Math.round((last - first) / step);
  const value = (/** @type {number} */ k) => +(first + Math.min(Math.max(k, 0), steps) * step).toFixed(9);
  const stepsTo = (/** @type {number} */ at) => (at - first) / step;
  const shade = s("rect", { class: "brush", y: top, height: bottom - top, visibility: "hidden" });
  svg.insertBefore(shade, svg.querySelector(".line"));
  svg.classList.add("brushable");
  const show = (/** @type {Limits | null | undefined} */ range) => {
    shade.setAttribute("visibility", range ? "visible" : "hidden");
    if (!range) return;
    shade.setAttribute("x", String(x(range[0])));
    shade.setAttribute("width", String(Math.max(1, x(range[1]) - x(range[0]))));
  };
  show(brush);

  /** @type {{ at: number, px: number } | null} */
  let from = null;
  /** @type {Limits | null} */
  let dragged = null;
  let moved = false;
  const place = (/** @type {PointerEvent} */ event) => back(event.clientX - svg.getBoundingClientRect().left);
  svg.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    from = { at: place(event), px: event.clientX };
    dragged = null;
    moved = false;
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", (event) => {
    if (!from || (!moved && Math.abs(event.clientX - from.px) < 4)) return;
    moved = true;
    const [low, high] = [from.at, place(event)].sort((a, b) => a - b);
    dragged = [value(Math.floor(stepsTo(low) + 1e-9)), value(Math.ceil(stepsTo(high) - 1e-9))]; // every step touched
    show(dragged);
  });
  const end = (/** @type {Limits | null} */ range) => {
    from = dragged = null;
    if (range && range[0] < range[1]) onBrush(range[0], range[1]);
    else show(brush);
  };
  svg.addEventListener("pointerup", () => end(dragged));
  svg.addEventListener("pointercancel", () => end(null));
  svg.addEventListener("click", () => {
    if (!moved && brush) onBrush(null, null);
  });

  /** Return the range after a key, null to clear it, or undefined for other keys. */
  const rangeAfter = /** @returns {Limits | null | undefined} */ (/** @type {KeyboardEvent} */ event) => {
    if (probox.isCommand(event)) return undefined;
    if (event.key === "Escape") return brush ? null : undefined;
    const by = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (!by || (!brush && !event.shiftKey)) return undefined;
    if (!brush) {
      const start = Math.min(
        Math.max(Math.round(stepsTo(cursor() ?? first)), by < 0 ? 1 : 0),
        by > 0 ? steps - 1 : steps,
      );
      return by > 0 ? [value(start), value(start + 1)] : [value(start - 1), value(start)];
    }
    const [low, high] = brush.map((end) => Math.round(stepsTo(end)));
    if (event.shiftKey) return [value(low), value(Math.max(high + by, low + 1))]; // the upper end moves
    return low + by < 0 || high + by > steps ? brush : [value(low + by), value(high + by)];
  };
  return {
    /** Return whether the last click was part of selecting a range. */
    clicked: () => moved || Boolean(brush),
    /** Handle a key; return text for screen readers, or null for keys without effect on the range. */
    key(event) {
      const range = rangeAfter(event);
      if (range === undefined) return null;
      onBrush(range ? range[0] : null, range ? range[1] : null);
      return range ? `${xLabel} ${range[0]} to ${range[1]} selected` : "no range selected";
    },
  };
};

// Zoom and pan by wheel, drag and pinch; a swipe shows the next image.

const CLOSEST = 24,
  SWIPE = 60;

/** Return a zoom scaled by a factor about a fixed point. */
probox.zoomed = (zoom, factor, x, y) => {
  const scale = Math.min(Math.max(zoom.scale * factor, 1), CLOSEST);
  if (scale === 1) return { scale: 1, x: 0, y: 0 };
  const change = scale / zoom.scale;
  return { scale, x: x - (x - zoom.x) * change, y: y - (y - zoom.y) * change };
};

/**
 * Handle the pointer events of a canvas. `zoom()` and `setZoom(zoom)` are the position of the image. The callbacks are
 * `hover(event or null)`, `tap(event)` and `swipe(step)`, with -1 or 1 for the previous or next image.
 */
probox.gestures = (canvas, { zoom, setZoom, hover, tap, swipe }) => {
  /** @type {Map<number, { x: number, y: number }>} */
  const fingers = new Map(); // by pointer id
  /** @type {{ x: number, y: number, zoom: Zoom, moved: boolean, pinched: boolean } | null} */
  let start = null; // of the first finger
  const at = (/** @type {PointerEvent} */ event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const span = () => {
    const [a, b] = [...fingers.values()];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, length: Math.max(Math.hypot(a.x - b.x, a.y - b.y), 1) };
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    try {
      canvas.setPointerCapture(event.pointerId);
    } catch {
      /* the pointer may have left already */
    }
    fingers.set(event.pointerId, at(event));
    if (fingers.size === 1) start = { ...at(event), zoom: zoom(), moved: false, pinched: false };
    else if (start) Object.assign(start, { pinched: true, moved: true });
  });
  canvas.addEventListener("pointermove", (event) => {
    const point = at(event);
    if (!fingers.has(event.pointerId)) {
      if (event.pointerType !== "touch") hover(event);
      return;
    }
    if (fingers.size === 2) {
      const before = span();
      fingers.set(event.pointerId, point);
      const now = span();
      const moved = { ...zoom(), x: zoom().x + now.x - before.x, y: zoom().y + now.y - before.y };
      setZoom(probox.zoomed(zoom().scale > 1 ? moved : zoom(), now.length / before.length, now.x, now.y));
      return;
    }
    fingers.set(event.pointerId, point);
    if (!start) return;
    const dx = point.x - start.x,
      dy = point.y - start.y;
    start.moved ||= Math.hypot(dx, dy) > 4;
    if (start.moved && start.zoom.scale > 1) setZoom({ ...start.zoom, x: start.zoom.x + dx, y: start.zoom.y + dy });
  });
  const end = (/** @type {PointerEvent} */ event, /** @type {boolean} */ done) => {
    if (!fingers.delete(event.pointerId) || !start) return;
    if (fingers.size === 1) Object.assign(start, { ...[...fingers.values()][0], zoom: zoom() }); // continue with one finger
    if (fingers.size) return;
    const { x, y } = at(event);
    const dx = x - start.x,
      dy = y - start.y;
    if (done && !start.moved) tap(event);
    else if (
      done &&
      !start.pinched &&
      event.pointerType === "touch" &&
      start.zoom.scale === 1 &&
      zoom().scale === 1 &&
      Math.abs(dx) > SWIPE &&
      Math.abs(dx) > 2 * Math.abs(dy)
    )
      swipe(dx < 0 ? 1 : -1);
    start = null;
  };
  canvas.addEventListener("pointerup", (event) => end(event, true));
  canvas.addEventListener("pointercancel", (event) => end(event, false));
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      setZoom(probox.zoomed(zoom(), Math.exp(-event.deltaY / 300), event.offsetX, event.offsetY));
    },
    { passive: false },
  );
  canvas.addEventListener("dblclick", () => setZoom({ scale: 1, x: 0, y: 0 }));
};
