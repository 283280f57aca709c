// P(x): the probability of every pixel to belong to a detected object, from its box and corner covariances.
"use strict";
(() => {
  const probox = (window.probox = window.probox || {});

  /** The standard normal distribution function, to 1e-7 (Abramowitz and Stegun 7.1.26 for erf). */
  function cumulative(z) {
    const x = Math.abs(z) / Math.SQRT2;
    const t = 1 / (1 + 0.3275911 * x);
    const poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    const tail = 0.5 * poly * Math.exp(-x * x);
    return z >= 0 ? 1 - tail : tail;
  }

  /** Return Pr(X <= x, Y <= y) at every x of `xs` (ascending) for one y, for a Gaussian at 0. */
  function alongRow(xs, y, [xx, xy, yy]) {
    const sx = Math.sqrt(xx), sy = Math.sqrt(yy);
    const values = new Float64Array(xs.length);
    if (!(sx > 0) || !(sy > 0) || Math.abs(xy) < 1e-9 * sx * sy) {
      const above = sy > 0 ? cumulative(y / sy) : Number(y >= 0);
      for (let i = 0; i < xs.length; i++) values[i] = above * (sx > 0 ? cumulative(xs[i] / sx) : Number(xs[i] >= 0));
      return values;
    }
    // Sum density of x times Pr(Y <= y given x), from far left on.
    const slope = xy / xx, rest = Math.sqrt(Math.max(yy - (xy * xy) / xx, 1e-12));
    const step = 0.05;
    let u = -6, sum = 0, i = 0;
    while (i < xs.length && u < 6) {
      const middle = u + step / 2;
      const part = 0.3989422804 * Math.exp(-0.5 * middle * middle) * cumulative((y - slope * sx * middle) / rest) * step;
      while (i < xs.length && xs[i] / sx < u + step) {
        values[i] = sum + part * Math.max((xs[i] / sx - u) / step, 0);
        i++;
      }
      sum += part;
      u += step;
    }
    while (i < xs.length) values[i++] = sum;
    return values;
  }

  /** Return one corner's map on a grid: Pr(0 <= X <= x, 0 <= Y <= y) for every x, y. */
  function cornerMap(xs, ys, mean, covariance) {
    const left = xs.map((x) => x - mean[0]);
    const all = [-mean[0], ...left];
    const aboveImage = alongRow(all, -mean[1], covariance);
    return ys.map((y) => {
      const row = alongRow(all, y - mean[1], covariance);
      return left.map((_, i) => row[i + 1] - row[0] - aboveImage[i + 1] + aboveImage[0]);
    });
  }

  /** Return the first and last cell that a detection can reach along one axis. */
  function reach(low, high, spread, size, cells) {
    const scale = cells / size;
    return [Math.max(0, Math.floor((low - spread - 1) * scale)),
      Math.min(cells - 1, Math.ceil((high + spread + 2) * scale))];
  }

  /** Return P on a grid of `columns` x `rows` cells over the image, row by row. */
  probox.heatmap = (detection, width, height, columns, rows) => {
    const [x1, y1, x2, y2] = detection.box;
    const { corners } = detection;
    const values = new Float32Array(columns * rows);
    const spread = (axis) => (corners ? 5 * Math.sqrt(Math.max(corners[0][axis], corners[1][axis])) : 0);
    const [left, right] = reach(x1, x2, spread(0), width, columns);
    const [top, bottom] = reach(y1, y2, spread(2), height, rows);
    if (right < left || bottom < top) return values;
    // The far corner of the pixel around each cell's centre.
    const xs = Array.from({ length: right - left + 1 }, (_, i) => ((left + i + 0.5) * width) / columns + 0.5);
    const ys = Array.from({ length: bottom - top + 1 }, (_, j) => ((top + j + 0.5) * height) / rows + 0.5);
    const put = (value, i, j) => {
      values[(top + j) * columns + left + i] = value < 0.0027 ? 0 : Math.min(value, 1);
    };
    if (!corners) {
      // A plain box covers pixels ceil(x1)..floor(x2), and a fraction of those beyond.
      const inside = (far, low, high) => Math.min(Math.max(Math.min(far - low, high + 2 - far), 0), 1);
      ys.forEach((y, j) => xs.forEach((x, i) => put(inside(x, x1, x2) * inside(y, y1, y2), i, j)));
      return values;
    }
    const first = cornerMap(xs, ys, [x1, y1], corners[0]);
    // The other corner is the same thing in the image turned by 180 degrees.
    const back = (list, size) => list.map((x) => size - (x - 1)).reverse();
    const second = cornerMap(back(xs, width), back(ys, height), [width - x2 - 1, height - y2 - 1], corners[1]);
    for (let j = 0; j < ys.length; j++) {
      for (let i = 0; i < xs.length; i++) {
        put(first[j][i] * second[ys.length - 1 - j][xs.length - 1 - i], i, j);
      }
    }
    return values;
  };
})();
