// The layer of probabilities: P(x) in colours that everyone tells apart, with stored maps loaded when they are needed.
"use strict";
(() => {
  const { probox } = window;
  const { HEAT } = probox.constants;
  const RASTER = 480; // cells along the longer side: a layer to look at need not have every pixel of a photo
  const FADE = 0.25; // below this probability colours fade out, so that the photo is seen where nothing is claimed
  const STRENGTH = 0.66;

  const channels = HEAT.map((colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)));

  /** Return red, green, blue and strength, 0 to 255 each, of a probability. */
  probox.heatColour = (probability) => {
    const place = Math.min(Math.max(probability, 0), 1) * (channels.length - 1);
    const low = Math.min(Math.floor(place), channels.length - 2),
      share = place - low;
    const mixed = channels[low].map((value, i) => Math.round(value + share * (channels[low + 1][i] - value)));
    return [...mixed, Math.round(255 * STRENGTH * Math.min(1, Math.max(probability, 0) / FADE))];
  };

  const TABLE = Array.from({ length: 256 }, (_, i) => probox.heatColour(i / 255));

  /**
   * Return a picture of the highest of some detections' probabilities at every cell; maps that are not here are asked for.
   *
   * @param {SceneDetection[]} shown
   * @param {number} width
   * @param {number} height
   * @param {Convention} convention
   */
  function compose(shown, width, height, convention) {
    const scale = Math.min(1, RASTER / Math.max(width, height));
    const columns = Math.max(1, Math.round(width * scale)),
      rows = Math.max(1, Math.round(height * scale));
    const highest = new Float32Array(columns * rows);
    for (const d of shown) {
      if (d.map && !d.values) {
        loadMap(d, d.map, width, height, columns, rows);
        continue;
      }
      const values = d.values ?? probox.heatmap(d, width, height, columns, rows, convention);
      for (let i = 0; i < values.length; i++) if (values[i] > highest[i]) highest[i] = values[i];
    }
    const canvas = document.createElement("canvas");
    canvas.width = columns;
    canvas.height = rows;
    const target = probox.drawing(canvas);
    const picture = target.createImageData(columns, rows);
    for (let i = 0; i < highest.length; i++) {
      if (highest[i] > 0) picture.data.set(TABLE[Math.round(255 * Math.min(highest[i], 1))], 4 * i);
    }
    target.putImageData(picture, 0, 0);
    return canvas;
  }

  /** Paint P(x) of the detection in focus, or for every pixel that of the detection that claims it most. */
  probox.paintHeatmap = (context, geometry, view, r, detections, focus) => {
    const { width, height } = geometry;
    const shown = focus && focus.detection >= 0 ? detections.filter((d) => d.row === focus.detection) : detections;
    // Stored maps arrive one by one: how many are here is a part of what the picture shows.
    const here = shown.filter((d) => d.map && d.values).length;
    const key = `${view.threshold} ${shown === detections ? "all" : shown.map((d) => d.row)} ${here}`;
    geometry.heat ||= new Map();
    let heat = geometry.heat.get(r);
    if (heat?.key !== key) {
      heat = { key, canvas: compose(shown, width, height, view.result.convention) };
      geometry.heat.set(r, heat);
    }
    context.globalAlpha = 1;
    const smooth = context.imageSmoothingEnabled;
    context.imageSmoothingEnabled = true;
    context.drawImage(heat.canvas, 0, 0, width, height);
    context.imageSmoothingEnabled = smooth;
  };

  /**
   * Load a stored heatmap (a grey picture of a part of the image) and paint anew when it is there.
   *
   * @param {SceneDetection} d
   * @param {NonNullable<SceneDetection["map"]>} map
   * @param {number} width
   * @param {number} height
   * @param {number} columns
   * @param {number} rows
   */
  function loadMap(d, map, width, height, columns, rows) {
    if (d.loading) return;
    const image = new Image();
    d.loading = image;
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = columns;
      canvas.height = rows;
      const context = probox.drawing(canvas, { willReadFrequently: true });
      context.scale(columns / width, rows / height);
      const [x, y, w, h] = map.box;
      context.drawImage(image, x, y, w, h);
      const { data } = context.getImageData(0, 0, columns, rows);
      d.values = Float32Array.from({ length: columns * rows }, (_, i) => data[4 * i] / 255);
      probox.repaint();
    };
    image.onerror = () => probox.say("a heatmap of this image cannot be read");
    image.src = map.source;
  }

  /** Make the scale of the colours, from 0 to 1, as they look on a light ground. */
  probox.heatScale = () => {
    const steps = HEAT.map((_, i) => {
      const share = i / (HEAT.length - 1);
      const [red, green, blue, strength] = probox.heatColour(share);
      return `rgb(${red} ${green} ${blue} / ${(strength / 255).toFixed(3)}) ${(100 * share).toFixed(1)}%`;
    });
    return probox.h(
      "div",
      {
        class: "scale",
        hidden: true,
        role: "img",
        "aria-label":
          "colours of the heatmap: P(x), the probability of a pixel to belong to a detected object, from 0, dark and clear, to 1, yellow",
      },
      probox.h("span", {}, "P(x)"),
      probox.h("span", {}, "0"),
      probox.h("i", { style: `background:linear-gradient(90deg, ${steps.join(", ")}), #fff` }),
      probox.h("span", {}, "1"),
    );
  };
})();
