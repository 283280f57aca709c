// Rows of maps. Part of loops.inl.

namespace {

// Calls eight(i) for blocks that cover exactly 0..n - 1: the last block overlaps the previous one, and rows shorter
// than a block use single(i).
template <class Eight, class Single>
PROBOX_INLINE void for_exactly(int n, Eight&& eight, Single&& single) {
  int i = 0;
  if (n < kLanes) {
    for (; i < n; ++i) single(i);
    return;
  }
  for (; i + kLanes <= n; i += kLanes) eight(i);
  if (i < n) eight(n - kLanes);
}

template <class T>
PROBOX_INLINE T in_range(T value, T cut) {
  value = value < T(1) ? value : T(1);
  return value < cut ? T(0) : value;
}

template <class T>
void multiply_row(const T* a, const T* b, int n, T cut, T* out) {
  const auto low = filled(cut), one = filled(T(1));
  for_exactly(
      n, [&](int i) { store(zero_below(smallest(load(a + i) * load(b + i), one), low), out + i); },
      [&](int i) { out[i] = in_range(a[i] * b[i], cut); });
}

template <class T>
void scale_row(const T* a, T factor, int n, T cut, T* out) {
  const auto low = filled(cut), one = filled(T(1)), f = filled(factor);
  for_exactly(
      n, [&](int i) { store(zero_below(smallest(load(a + i) * f, one), low), out + i); },
      [&](int i) { out[i] = in_range(a[i] * factor, cut); });
}

template <class T>
void finish_row(const double* value, double factor, T left, const T* above, T origin, int n, T cut, bool reverse,
                T* out) {
  const auto low = filled(cut), away = filled(left), back = filled(origin);
  const Doubles f = filled(factor);
  for_exactly(
      n,
      [&](int i) {
        auto v = LanesOf<T>::from(load(value + i) * f) - away;
        if (above) v = v - load(above + i) + back;
        v = zero_below(v, low);
        if (reverse)
          store(reversed(v), out + n - i - kLanes);
        else
          store(v, out + i);
      },
      [&](int i) {
        T v = static_cast<T>(value[i] * factor) - left;
        if (above) v = v - above[i] + origin;
        out[reverse ? n - 1 - i : i] = v < cut ? T(0) : v;
      });
}

template <class T>
void transpose(const T* in, int rows, int columns, T* out, std::size_t stride) {
  constexpr int kTile = 8;
  const std::size_t length = static_cast<std::size_t>(columns);
  int r0 = 0;
  for (; r0 + kTile <= rows; r0 += kTile)
    for (int c = 0; c < columns; ++c) {
      const T* from = in + r0 * length + c;
      T* to = out + c * stride + r0;
      PROBOX_UNROLL for (int r = 0; r < kTile; ++r) to[r] = from[r * length];
    }
  for (; r0 < rows; ++r0)
    for (int c = 0; c < columns; ++c) out[c * stride + r0] = in[r0 * length + c];
}

}  // namespace
