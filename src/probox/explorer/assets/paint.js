// Painting one image: photo, masks, boxes, ellipses, heatmap and labels on a canvas.
"use strict";
(() => {
  const probox = (window.probox = window.probox || {});
  const { SIGMA, SIGMAS } = probox.constants;
  const { TP, FP, FN, DROPPED } = probox.constants.VERDICT;

  const verdictColour = (verdict) =>
    probox.css(verdict === TP ? "--right" : verdict === FP || verdict === FN ? "--wrong" : "--neutral");

  /** Load a photo once; call back when it can be drawn, and not at all if there is none. */
  const photos = new Map();
  probox.withPhoto = (store, row, small, callback) => {
    const ending = store.images.photo[row];
    if (!ending) return;
    const embedded = document.getElementById(`photo-${row}`);
    const source = embedded ? embedded.textContent
      : small ? `thumbs/${row}.jpg` : `photos/${row}${ending}`;
    let entry = photos.get(source);
    if (!entry) {
      const image = new Image();
      entry = { image, waiting: [], ready: false };
      photos.set(source, entry);
      image.onload = () => {
        entry.ready = true;
        for (const one of entry.waiting.splice(0)) one(image);
      };
      image.src = source;
      if (photos.size > 300) photos.delete(photos.keys().next().value); // decoded photos are large
    }
    if (entry.ready) callback(entry.image);
    else entry.waiting.push(callback);
  };

  /** Return the detections of an image that count at the threshold, the surest last. */
  probox.keptDetections = (geometry, view, r) => {
    const { confidence } = view.result.detections;
    return geometry.results[r].filter((d) => view.verdict[d.row] !== DROPPED)
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
    if (layers.has("h")) paintHeatmap(context, geometry, view, r, detections, focus);
    if (layers.has("m")) {
      const byArea = [...geometry.objects].sort((a, b) => (b.x1 - b.x0) * (b.y1 - b.y0) - (a.x1 - a.x0) * (a.y1 - a.y0));
      for (const object of byArea) {
        const colour = verdictColour(view.objectVerdict[object.row]);
        const chosen = focus && focus.object === object.row;
        context.globalAlpha = layers.has("h") && view.objectVerdict[object.row] !== FN ? 0 : chosen ? 0.55 : focus ? 0.14 : 0.36;
        if (context.globalAlpha > 0 && (fine || object.filled)) {
          context.fillStyle = colour;
          context.fill(probox.area(object));
        } else if (context.globalAlpha > 0) {
          context.drawImage(probox.maskCanvas(object, colour), object.x0, object.y0);
        }
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
      if (layers.has("e") && d.corners) paintCorners(context, d, colour, strength, line, fine);
      if (layers.has("b")) paintBox(context, d, colour, strength, (chosen ? 2.6 : 1.7 * thin) * line, fine);
    }
    context.globalAlpha = 1;
  };

  function paintBox(context, d, colour, strength, width, fine) {
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
    context.strokeRect(x1 + 0.5, y1 + 0.5, x2 - x1, y2 - y1);
  }

  function paintCorners(context, d, colour, strength, line, fine) {
    d.corners.forEach((covariance, corner) => {
      const { long, short, angle } = probox.axes(covariance);
      const x = d.box[2 * corner] + 0.5, y = d.box[2 * corner + 1] + 0.5;
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

  /** Paint P(x) of the detection in focus, or for every pixel that of the detection that claims it most. */
  function paintHeatmap(context, geometry, view, r, detections, focus) {
    const { width, height } = geometry;
    const scale = Math.min(1, 360 / Math.max(width, height));
    const columns = Math.max(1, Math.round(width * scale)), rows = Math.max(1, Math.round(height * scale));
    const shown = focus && focus.detection >= 0 ? detections.filter((d) => d.row === focus.detection) : detections;
    const key = `${r} ${view.threshold} ${shown.length === 1 ? shown[0].row : "all"} ${probox.css("--right")}`;
    if (!geometry.heat || geometry.heat.key !== key) {
      const canvas = document.createElement("canvas");
      canvas.width = columns;
      canvas.height = rows;
      const target = canvas.getContext("2d");
      const picture = target.createImageData(columns, rows);
      const highest = new Float32Array(columns * rows);
      for (const d of shown) {
        if (d.map && !d.values) { probox.loadMap(d, width, height, columns, rows); continue; }
        const values = d.map ? d.values : probox.heatmap(d, width, height, columns, rows, view.result.convention);
        const [red, green, blue] = rgb(verdictColour(view.verdict[d.row]));
        for (let i = 0; i < values.length; i++) {
          if (values[i] <= highest[i]) continue;
          highest[i] = values[i];
          picture.data.set([red, green, blue, 160 * values[i]], 4 * i);
        }
      }
      target.putImageData(picture, 0, 0);
      geometry.heat = { key, canvas };
    }
    context.globalAlpha = 1;
    const smooth = context.imageSmoothingEnabled;
    context.imageSmoothingEnabled = true;
    context.drawImage(geometry.heat.canvas, 0, 0, width, height);
    context.imageSmoothingEnabled = smooth;
  }

  /** Load a stored heatmap (a grey picture of a part of the image) and paint anew when it is there. */
  probox.loadMap = (d, width, height, columns, rows) => {
    if (d.loading) return;
    d.loading = new Image();
    d.loading.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = columns;
      canvas.height = rows;
      const context = canvas.getContext("2d", { willReadFrequently: true });
      context.scale(columns / width, rows / height);
      const [x, y, w, h] = d.map.box;
      context.drawImage(d.loading, x, y, w, h);
      const { data } = context.getImageData(0, 0, columns, rows);
      d.values = Float32Array.from({ length: columns * rows }, (_, i) => data[4 * i] / 255);
      probox.repaint();
    };
    d.loading.src = d.map.source;
  };

  function rgb(colour) {
    const number = parseInt(colour.slice(1), 16);
    return [number >> 16, (number >> 8) & 255, number & 255];
  }

  /** Write class names at detections and missed objects where there is room, on a canvas in CSS pixels. */
  probox.paintLabels = (context, geometry, view, r, toScreen, size, focus) => {
    const { store } = view;
    const name = (number) => (number < 0 ? "unknown class" : store.classes[number]);
    const { detections } = view.result;
    const labels = [
      ...probox.keptDetections(geometry, view, r).reverse().map((d) => ({
        text: `${name(detections.class[d.row])} ${Math.round(100 * detections.score[d.row])}`,
        box: d.box, verdict: view.verdict[d.row], chosen: focus && focus.detection === d.row })),
      ...geometry.objects.filter((o) => view.objectVerdict[o.row] === FN).map((o) => ({
        text: `missed ${name(store.objects.class[o.row])}`, box: [o.x0, o.y0, o.x1, o.y1], verdict: FN,
        chosen: focus && focus.object === o.row })),
    ].filter((label) => !focus || label.chosen).sort((a, b) => (b.verdict === TP) - (a.verdict === TP));
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const taken = [];
    for (const { text, box, verdict } of labels) {
      const [left, top] = toScreen(box[0] + 0.5, box[1] + 0.5);
      const [right, bottom] = toScreen(box[2] + 0.5, box[3] + 0.5);
      const w = context.measureText(text).width + 10, h = 18;
      const places = [[left, top - h], [right - w, top - h], [left, bottom], [right - w, bottom], [left, top], [right - w, top],
        [left, bottom - h], [right - w, bottom - h]];
      const place = places.find(([x, y]) => x >= 0 && y >= 0 && x + w <= size[0] && y + h <= size[1]
        && !taken.some(([a, b, c]) => x < a + c && a < x + w && y < b + h && b < y + h));
      if (!place) continue;
      const [x, y] = place;
      taken.push([x, y, w]);
      context.fillStyle = probox.css("--panel");
      context.globalAlpha = 0.9;
      context.beginPath();
      context.roundRect(x + 1, y + 1, w - 2, h - 2, 4);
      context.fill();
      context.globalAlpha = 1;
      context.strokeStyle = verdictColour(verdict);
      context.lineWidth = 1;
      context.stroke();
      context.fillStyle = probox.css("--ink");
      context.fillText(text, x + 5, y + h / 2 + 0.5);
    }
  };
})();
