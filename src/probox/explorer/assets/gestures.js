// Zoom and pan by wheel, drag and pinch; a swipe goes to the neighbour.
"use strict";
(() => {
  const { probox } = window;
  const CLOSEST = 24,
    SWIPE = 60;

  /** Return a zoom changed by a factor about a point that stays where it is. */
  probox.zoomed = (zoom, factor, x, y) => {
    const scale = Math.min(Math.max(zoom.scale * factor, 1), CLOSEST);
    if (scale === 1) return { scale: 1, x: 0, y: 0 };
    const change = scale / zoom.scale;
    return { scale, x: x - (x - zoom.x) * change, y: y - (y - zoom.y) * change };
  };

  /**
   * Listen to a canvas. `zoom()` and `setZoom(zoom)` hold the picture's place, `hover(event or null)` is told where the
   * pointer is, `tap(event)` where it was pressed, `swipe(step)` which neighbour is wanted.
   */
  probox.gestures = (canvas, { zoom, setZoom, hover, tap, swipe }) => {
    /** @type {Map<number, { x: number, y: number }>} */
    const fingers = new Map(); // by id
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
        /* a pointer that is gone already */
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
      if (fingers.size === 1) Object.assign(start, { ...[...fingers.values()][0], zoom: zoom() }); // go on with one finger
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
})();
