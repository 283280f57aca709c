// Distributions of corners. Part of loops.inl.

namespace {

// Phi and its density at t, from the nearest entry of their table and a few terms of the Taylor series there.
struct NormalEntries {
  const double* entries;
  int steps, reach;

  struct Near {
    Doubles value, slope, at, d;
  };

  PROBOX_INLINE Near nearest(const Doubles& t) const {
    const double shifter = 6755399441055744.0;  // as in `exponential`
    const double per = 1.0 / steps, edge = reach - per;
    // Beyond the table Phi is constant, 0 or 1, and its density 0 in double precision.
    const Doubles x = largest(smallest(t, filled(edge)), filled(-edge));
    const Doubles shifted = x * static_cast<double>(steps) + shifter;
    const Doubles at = (shifted - shifter) * per;
    const std::uint64_t offset = static_cast<std::uint64_t>(steps) * static_cast<std::uint64_t>(reach);
    // The lowest bits of `shifted` are the whole number; `offset` makes it positive.
    const Bits row = ((bits_of(shifted) & 0xffffffffULL) + offset) & 0xffffffffULL;
    return {gather(entries, row << 1), gather(entries + 1, row << 1), at, x - at};
  }

  PROBOX_INLINE Doubles cdf(const Near& n) const {
    const Doubles u = n.at * n.at;
    const Doubles inner = (u - 1.0) * (1.0 / 6) - n.d * (u - 3.0) * n.at * (1.0 / 24);
    return n.value + n.slope * n.d * (n.d * (n.at * -0.5 + n.d * inner) + 1.0);
  }

  PROBOX_INLINE Doubles density(const Near& n) const {
    const Doubles u = n.at * n.at;
    const Doubles fourth = (u * u - u * 6.0 + 3.0) * (1.0 / 24);
    const Doubles third = n.at * (u - 3.0) * (-1.0 / 6) + n.d * fourth;
    const Doubles second = (u - 1.0) * 0.5 + n.d * third;
    return n.slope * (n.d * (n.d * second - n.at) + 1.0);
  }
};

PROBOX_INLINE Doubles counting() {
  const double numbers[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7};
  return load(numbers);
}

void normal_cdfs(double first, double mean, double sigma, int n, const double* entries, int steps, int reach,
                 double* cdf) {
  const NormalEntries table{entries, steps, reach};
  for (int i = 0; i < n; i += kLanes)
    store(table.cdf(table.nearest((counting() + static_cast<double>(i) + first - mean) / filled(sigma))), cdf + i);
}

// The rows of a table at arguments t, and at arguments `apart` further on.
template <int Blocks>
PROBOX_INLINE void tabulate_blocks(const NormalEntries& normal, const Doubles& t, double apart, int rows,
                                   std::size_t points, const double* a, const double* b, double* out) {
  Doubles at[Blocks], before[Blocks], now[Blocks];
  PROBOX_UNROLL for (int block = 0; block < Blocks; ++block) {
    // Beyond the table's reach all derivatives are 0; without this, powers of a large t would exceed the density.
    const Doubles reach = filled(static_cast<double>(normal.reach));
    at[block] = largest(smallest(t + block * apart, reach), filled(0.0) - reach);
    const NormalEntries::Near near = normal.nearest(at[block]);
    before[block] = normal.cdf(near);
    now[block] = normal.density(near);
    store(before[block], out + block * kLanes);
    store(now[block], out + points + block * kLanes);
  }
  for (int k = 1; k + 1 < rows; ++k) PROBOX_UNROLL for (int block = 0; block < Blocks; ++block) {
      const Doubles next = at[block] * a[k] * now[block] + before[block] * b[k];
      store(next, out + (k + 1) * points + block * kLanes);
      before[block] = now[block];
      now[block] = next;
    }
}

void tabulate(double low, double step, int phases, int length, const double* entries, int steps, int reach, int rows,
              double* table) {
  const NormalEntries normal{entries, steps, reach};
  const std::size_t points = static_cast<std::size_t>(phases) * static_cast<std::size_t>(length);
  // (k + 1) row(k + 1) = -t row(k) - (k - 1)/k row(k - 1), Hermite's recurrence for Phi^(k)(t) / k!.
  double a[probox::kPowers], b[probox::kPowers];
  for (int k = 1; k + 1 < rows; ++k) {
    a[k] = -1.0 / (k + 1);
    b[k] = -(k - 1.0) / k / (k + 1);
  }
  for (int phase = 0; phase < phases; ++phase) {
    double* out = table + static_cast<std::size_t>(phase) * static_cast<std::size_t>(length);
    const double first = phase * step + low, apart = phases * step;
    int i = 0;
    // Two blocks at a time, which hides the latency of dependent operations.
    for (; i + 2 * kLanes <= length; i += 2 * kLanes)
      tabulate_blocks<2>(normal, (counting() + static_cast<double>(i)) * apart + first, kLanes * apart, rows, points, a,
                         b, out + i);
    if (i < length)
      tabulate_blocks<1>(normal, (counting() + static_cast<double>(i)) * apart + first, 0.0, rows, points, a, b,
                         out + i);
  }
}

// With u the node's position in the first part and d the length of a part, the position in part g is u + g d, and
//   phi(u + g d) = phi(u) r^g exp(-(g d)^2 / 2),   r = exp(-u d):
// one exponential per node and one per part; the rest are products.
void start_weights(const double* node, const double* weight, int nodes, double from, double half, double* now,
                   double* ratio) {
  const double apart = 2 * half;
  const Doubles u = load(node) * half + (from + half);
  const Doubles first =
      exponential(largest(u * u * -0.5, filled(-700.0))) * (load(weight) * (half * 0.39894228040143267794));
  const Doubles r = exponential(smallest(largest(u * -apart, filled(-700.0)), filled(700.0)));
  const Doubles g = counting();
  double alone[kGroup], later[kGroup], by_part[kGroup * kLanes];
  store(exponential(largest(g * g * (-0.5 * apart * apart), filled(-700.0))), alone);
  Doubles power = first;
  for (int part = 0; part < kGroup; ++part) {
    store(power * alone[part], by_part + part * kLanes);
    power = power * r;
  }
  for (int j = 0; j < nodes; ++j)
    for (int part = 0; part < kGroup; ++part) now[j * kGroup + part] = by_part[part * kLanes + j];
  if (ratio == nullptr) return;
  // phi(v + 8 d) / phi(v) at v = u + g d is r^8 exp(-(8 g + 32) d^2).
  const Doubles r2 = r * r, r4 = r2 * r2;
  store(r4 * r4, later);
  const Doubles change = exponential(largest((g * 8.0 + 32.0) * (-apart * apart), filled(-700.0)));
  for (int j = 0; j < nodes; ++j) store(change * later[j], ratio + j * kGroup);
}

void next_moments(const double* node, int nodes, double half, const double* offset, double slope, double change,
                  int count, double* now, double* ratio, double* moments) {
  const Doubles from = load(offset);
  Doubles sum[probox::kPowers];
  for (int k = 0; k < count; ++k) sum[k] = filled(0.0);
  for (int j = 0; j < nodes; ++j) {
    const Doubles d = from + node[j] * half * slope;
    Doubles power = load(now + j * kGroup);
    if (ratio != nullptr) {
      const Doubles rate = load(ratio + j * kGroup);
      store(power * rate, now + j * kGroup);
      store(rate * change, ratio + j * kGroup);
    }
    for (int k = 0; k < count; ++k) {
      sum[k] = sum[k] + power;
      power = power * d;
    }
  }
  for (int k = 0; k < count; ++k) store(sum[k], moments + k * kGroup);
}

// A strip of `Strips` times eight columns: the sum over taps, in two independent sums of alternate taps.
template <int Strips>
PROBOX_INLINE void add_strip(double* sum, const double* source, int stride, const double* weight, int taps) {
  Doubles sums[Strips], other_sums[Strips];
  PROBOX_UNROLL for (int s = 0; s < Strips; ++s) {
    sums[s] = load(sum + s * kLanes);
    other_sums[s] = filled(0.0);
  }
  int t = 0;
  for (; t + 2 <= taps; t += 2, source += 2 * static_cast<std::ptrdiff_t>(stride))
    PROBOX_UNROLL for (int s = 0; s < Strips; ++s) {
      sums[s] = sums[s] + load(source + s * kLanes) * weight[t * kGroup];
      other_sums[s] = other_sums[s] + load(source + stride + s * kLanes) * weight[(t + 1) * kGroup];
    }
  if (t < taps)
    PROBOX_UNROLL for (int s = 0; s < Strips; ++s) sums[s] = sums[s] + load(source + s * kLanes) * weight[t * kGroup];
  PROBOX_UNROLL for (int s = 0; s < Strips; ++s) store(sums[s] + other_sums[s], sum + s * kLanes);
}

void add_taps(double* sum, int n, int all, const double* table, int stride, const double* weight, int taps) {
  int i = 0;
  for (; i + kLanes < n; i += 2 * kLanes) add_strip<2>(sum + i, table + i, stride, weight, taps);
  if (i < n) {
    add_strip<1>(sum + i, table + i, stride, weight, taps);
    i += kLanes;
  }
  for (; i < all; i += kLanes) store(load(sum + i) + weight[0], sum + i);
}

void plackett_row(const double* h, const double* base, int n, double k, double factor, const double* sine,
                  const double* scale, const double* weight, int nodes, double* out) {
  for (int i = 0; i < n; i += kLanes) {
    const Doubles x = load(h + i), product = x * k, half = (x * x + k * k) * 0.5;
    Doubles sum = load(base + i) * factor;
    for (int j = 0; j < nodes; ++j) {
      // Below -700 the exponential is 0, and its bits would wrap around.
      const Doubles power = largest((product * sine[j] - half) * scale[j], filled(-700.0));
      sum = sum + exponential(power) * weight[j];
    }
    store(sum, out + i);
  }
}

}  // namespace
