// Painting one image: photo, masks, boxes and ellipses on a canvas.
"use strict";
(() => {
  const { probox } = window;
  const { SIGMA, SIGMAS } = probox.constants;
  const { TP, FP, FN, DROPPED } = probox.constants.VERDICT;

  const verdictColour = (probox.verdictColour = (verdict) =>
    probox.css(verdict === TP ? "--right" : verdict === FP || verdict === FN ? "--wrong" : "--neutral"));

  /** @typedef {{ image: HTMLImageElement; waiting: ((image: HTMLImageElement) => void)[]; ready: boolean }} Photo */
  /** @type {Map<string, Photo>} */
  const photos = new Map();

  /** Load a photo once; call back when it can be drawn, and not at all if there is none. */
  probox.withPhoto = (store, row, small, callback) => {
    const ending = store.images.photo[row];
    if (!ending) return;
    const embedded = document.getElementById(`photo-${row}`);
    const source = embedded ? embedded.textContent : small ? `thumbs/${row}.jpg` : `photos/${row}${ending}`;
    let entry = photos.get(source);
    if (!entry) {
      const image = new Image();
      /** @type {Photo} */
      const made = { image, waiting: [], ready: false };
      entry = made;
      photos.set(source, made);
      image.onload = () => {
        made.ready = true;
        for (const one of made.waiting.splice(0)) one(image);
      };
      image.src = source;
      const [oldest] = photos.keys();
      if (photos.size > 300) photos.delete(oldest); // decoded photos are large
    }
    if (entry.ready) callback(entry.image);
    else entry.waiting.push(callback);
  };

  /** Return the detections of an image that count at the threshold, the surest last. */
  probox.keptDetections = (geometry, view, r) => {
    const { confidence } = view.result.detections;
    return geometry.results[r]
      .filter((d) => view.verdict[d.row] !== DROPPED)
      .sort((a, b) => confidence[a.row] - confidence[b.row]);
  };

  /**
   * Paint objects and detections; the context is scaled so that a pixel of the image is `zoom` wide.
   * `focus` is { object, detection } rows to bring out, or null.
   */
  probox.paintScene = (context, geometry, view, r, { zoom, layers, focus, fine }) => {
    const line = 1 / zoom;
    const detections = probox.keptDetections(geometry, view, r);
    const thin = Math.min(1, Math.max(0.45, 40 / Math.max(detections.length, 1)));
    context.imageSmoothingEnabled = zoom < 1;
    if (layers.has("h")) probox.paintHeatmap(context, geometry, view, r, detections, focus);
    if (layers.has("m")) {
      const byArea = [...geometry.objects].sort(
        (a, b) => (b.x1 - b.x0) * (b.y1 - b.y0) - (a.x1 - a.x0) * (a.y1 - a.y0),
      );
      for (const object of byArea) {
        const colour = verdictColour(view.objectVerdict[object.row]);
        const chosen = focus && focus.object === object.row;
        context.globalAlpha =
          layers.has("h") && view.objectVerdict[object.row] !== FN ? 0 : chosen ? 0.55 : focus ? 0.14 : 0.36;
        if (context.globalAlpha > 0 && (fine || object.filled)) {
          context.fillStyle = colour;
          context.fill(probox.area(object));
        } else if (context.globalAlpha > 0) {
          context.drawImage(probox.maskCanvas(object, colour), object.x0, object.y0);
        }
        if (view.objectVerdict[object.row] === FN && !fine && !(focus && !chosen)) hatch(context, object, colour, line);
        context.globalAlpha = focus && !chosen ? 0.3 : 1;
        context.strokeStyle = colour;
        context.lineWidth = (chosen ? 2.4 : fine ? 1 : 1.5) * line;
        context.lineCap = "square";
        context.stroke(probox.outline(object));
      }
    }
    for (const d of detections) {
      const chosen = focus && focus.detection === d.row;
      const verdict = view.verdict[d.row];
      const sure = verdict === TP ? 1 : (0.45 + 0.55 * view.result.detections.confidence[d.row]) * thin;
      const colour = verdictColour(verdict);
      const strength = chosen ? 1 : focus ? 0.22 : sure;
      if (layers.has("e") && d.corners) paintCorners(context, d, d.corners, colour, strength, line, fine);
      if (layers.has("b"))
        paintBox(
          context,
          d,
          colour,
          strength,
          (chosen ? 2.6 : 1.7 * thin) * line,
          fine,
          verdict === FP ? [7 * line, 4 * line] : [],
        );
    }
    context.globalAlpha = 1;
  };

  /**
   * @param {Context} context
   * @param {SceneDetection} d
   * @param {string} colour
   * @param {number} strength
   * @param {number} width
   * @param {boolean} fine
   * @param {number[]} dash
   */
  function paintBox(context, d, colour, strength, width, fine, dash) {
    // Pixel x is the square from x to x + 1: a corner at x lies in its middle.
    const [x1, y1, x2, y2] = d.box;
    if (!fine) {
      context.globalAlpha = 0.5 * strength;
      context.strokeStyle = "#fff";
      context.lineWidth = 1.9 * width;
      context.strokeRect(x1 + 0.5, y1 + 0.5, x2 - x1, y2 - y1);
    }
    context.globalAlpha = strength;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dash); // what is wrong is not told by its colour alone
    context.strokeRect(x1 + 0.5, y1 + 0.5, x2 - x1, y2 - y1);
    context.setLineDash([]);
  }

  /**
   * Hatch a mask, so that a missed object is not told by its colour alone.
   *
   * @param {Context} context
   * @param {SceneObject} object
   * @param {string} colour
   * @param {number} line
   */
  function hatch(context, object, colour, line) {
    const { x0, y0, x1, y1 } = object;
    const high = y1 - y0 + 1,
      step = 9 * line;
    context.save();
    context.clip(probox.area(object));
    context.globalAlpha = 0.55;
    context.strokeStyle = colour;
    context.lineWidth = 1.4 * line;
    context.beginPath();
    for (let x = x0 - high; x <= x1 + 1; x += step) {
      context.moveTo(x, y1 + 1);
      context.lineTo(x + high, y0);
    }
    context.stroke();
    context.restore();
  }

  /**
   * @param {Context} context
   * @param {SceneDetection} d
   * @param {Covariance[]} corners
   * @param {string} colour
   * @param {number} strength
   * @param {number} line
   * @param {boolean} fine
   */
  function paintCorners(context, d, corners, colour, strength, line, fine) {
    corners.forEach((covariance, corner) => {
      const { long, short, angle } = probox.axes(covariance);
      const x = d.box[2 * corner] + 0.5,
        y = d.box[2 * corner + 1] + 0.5;
      for (const deviations of fine ? [SIGMA] : SIGMAS) {
        context.beginPath();
        context.ellipse(x, y, deviations * long, deviations * short, angle, 0, 2 * Math.PI);
        context.fillStyle = colour;
        context.globalAlpha = 0.16 * strength;
        context.fill();
        if (!fine) {
          context.strokeStyle = "#fff";
          context.lineWidth = 2.4 * line;
          context.globalAlpha = 0.35 * strength;
          context.stroke();
        }
        context.strokeStyle = colour;
        context.lineWidth = 1.1 * line;
        context.globalAlpha = (1.15 - 0.22 * deviations) * strength;
        context.stroke();
      }
    });
  }
})();
