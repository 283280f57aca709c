// Boxes drawn from a detection's Gaussians: what it thinks might be. The same seed and number give the same box, so
// that a link shows what its sender saw.
"use strict";
(() => {
  const { probox } = window;
  const SHOWN = 6; // boxes of a detection at a time, the older the fainter
  const STILL = 12; // where nothing may move
  const EVERY = 140; // milliseconds from one box to the next

  /** Mix whole numbers into one of 32 bits, of which every bit depends on all of theirs. */
  function mixed(/** @type {number[]} */ ...numbers) {
    let hash = 0x9e3779b9;
    for (const number of numbers) {
      hash = Math.imul(hash ^ (number | 0), 0x85ebca6b);
      hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
      hash ^= hash >>> 16;
    }
    return hash >>> 0;
  }

  /** Return a source of numbers between 0 and 1, both left out. */
  function uniform(/** @type {number} */ seed) {
    let state = seed;
    return () => {
      state = (state + 0x6d2b79f5) | 0;
      let value = Math.imul(state ^ (state >>> 15), state | 1);
      value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
      return ((value ^ (value >>> 14)) >>> 0) / 4294967296 + 2 ** -33;
    };
  }

  /** Return box `number` of those drawn from N(corner, covariance) at both corners; null for a plain box. */
  probox.sampleBox = (detection, seed, number) => {
    if (!detection.corners) return null;
    const next = uniform(mixed(seed, number));
    const ends = detection.corners.flatMap(([xx, xy, yy], corner) => {
      // Two standard normal numbers (Box and Muller), and the covariance's root: L of L L^T (Cholesky).
      const radius = Math.sqrt(-2 * Math.log(next())),
        angle = 2 * Math.PI * next();
      const u = radius * Math.cos(angle),
        v = radius * Math.sin(angle);
      const l11 = Math.sqrt(Math.max(xx, 0)),
        l21 = l11 > 0 ? xy / l11 : 0;
      const l22 = Math.sqrt(Math.max(yy - l21 * l21, 0));
      return [detection.box[2 * corner] + l11 * u, detection.box[2 * corner + 1] + l21 * u + l22 * v];
    });
    return /** @type {Box} */ (ends);
  };

  /** Return the boxes of a detection that are shown after some steps, with their strengths, the newest last. */
  probox.shownSamples = (detection, seed, step, still) => {
    const first = still ? 0 : Math.max(0, step - SHOWN + 1),
      last = still ? STILL - 1 : step;
    const boxes = [];
    for (let number = first; number <= last; number++) {
      boxes.push({
        box: probox.sampleBox(detection, seed, number),
        strength: still ? 0.4 : 1 - (last - number) / SHOWN,
      });
    }
    return boxes;
  };

  /** Paint samples of detections, on a context scaled as for the scene. */
  probox.paintSamples = (context, detections, { seed, step, still, zoom, colour }) => {
    for (const d of detections) {
      if (!d.corners) continue;
      for (const { box, strength } of probox.shownSamples(d, seed(d), step, still)) {
        if (!box) continue;
        const [x1, y1, x2, y2] = box;
        for (const { width, ink, alpha } of [
          { width: 3, ink: "#fff", alpha: 0.45 },
          { width: 1.3, ink: colour(d), alpha: 0.95 },
        ]) {
          context.globalAlpha = alpha * strength;
          context.strokeStyle = ink;
          context.lineWidth = width / zoom;
          context.strokeRect(x1 + 0.5, y1 + 0.5, x2 - x1, y2 - y1);
        }
      }
    }
    context.globalAlpha = 1;
  };

  probox.sampleSeed = (image, r, number) => mixed(image, r, number);

  /** Call `paint(step, still)` again and again while `wanted()`; `check()` after whatever may change that. */
  probox.sampler = (wanted, paint) => {
    const calm = matchMedia("(prefers-reduced-motion: reduce)");
    /** @type {number | null} */
    let timer = null;
    let step = 0;
    const check = () => {
      const moving = wanted() && !calm.matches && !document.hidden;
      if (moving && timer === null)
        timer = setInterval(() => {
          step++;
          paint(step, false);
        }, EVERY);
      if (!moving && timer !== null) {
        clearInterval(timer);
        timer = null;
      }
      probox.sampling = timer !== null;
    };
    document.addEventListener("visibilitychange", check);
    calm.addEventListener("change", () => {
      check();
      paint(step, calm.matches);
    });
    return {
      check,
      reset: () => {
        step = 0;
      },
      now: () => paint(step, calm.matches),
    };
  };
})();
