// Eight numbers in an array, for compilers without vector types. Part of lanes.hpp.

namespace {

template <class T>
struct Eight {
  T lane[kLanes];
};
typedef Eight<double> Doubles;
typedef Eight<float> Floats;
typedef Eight<std::uint64_t> Bits;

#define PROBOX_LANES for (int i = 0; i < kLanes; ++i)

template <class T>
PROBOX_INLINE Eight<T> every(T x) {
  Eight<T> a;
  PROBOX_LANES a.lane[i] = x;
  return a;
}
PROBOX_INLINE Doubles filled(double x) { return every(x); }
PROBOX_INLINE Floats filled(float x) { return every(x); }

#define PROBOX_OPERATOR(op)                                                  \
  template <class T>                                                         \
  PROBOX_INLINE Eight<T> operator op(const Eight<T>& a, const Eight<T>& b) { \
    Eight<T> c;                                                              \
    PROBOX_LANES c.lane[i] = a.lane[i] op b.lane[i];                         \
    return c;                                                                \
  }
PROBOX_OPERATOR(+)
PROBOX_OPERATOR(-)
PROBOX_OPERATOR(*)
PROBOX_OPERATOR(/)
#undef PROBOX_OPERATOR
#define PROBOX_OPERATOR(op, right)                         \
  PROBOX_INLINE Bits operator op(const Bits& a, right b) { \
    Bits c;                                                \
    PROBOX_LANES c.lane[i] = a.lane[i] op b;               \
    return c;                                              \
  }
PROBOX_OPERATOR(+, std::uint64_t)
PROBOX_OPERATOR(-, std::uint64_t)
PROBOX_OPERATOR(&, std::uint64_t)
PROBOX_OPERATOR(|, std::uint64_t)
PROBOX_OPERATOR(<<, int)
PROBOX_OPERATOR(>>, int)
#undef PROBOX_OPERATOR

PROBOX_INLINE Doubles load(const double* p) {
  Doubles a;
  std::memcpy(a.lane, p, sizeof a.lane);
  return a;
}
PROBOX_INLINE void store(const Doubles& a, double* p) { std::memcpy(p, a.lane, sizeof a.lane); }
PROBOX_INLINE Floats load(const float* p) {
  Floats a;
  std::memcpy(a.lane, p, sizeof a.lane);
  return a;
}
PROBOX_INLINE void store(const Floats& a, float* p) { std::memcpy(p, a.lane, sizeof a.lane); }

template <class T>
PROBOX_INLINE Eight<T> largest(const Eight<T>& a, const Eight<T>& b) {
  Eight<T> c;
  PROBOX_LANES c.lane[i] = a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i];
  return c;
}
template <class T>
PROBOX_INLINE Eight<T> smallest(const Eight<T>& a, const Eight<T>& b) {
  Eight<T> c;
  PROBOX_LANES c.lane[i] = a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i];
  return c;
}
template <class T>
PROBOX_INLINE Eight<T> zero_below(const Eight<T>& a, const Eight<T>& limit) {
  Eight<T> c;
  PROBOX_LANES c.lane[i] = a.lane[i] < limit.lane[i] ? T(0) : a.lane[i];
  return c;
}
template <class T>
PROBOX_INLINE Eight<T> first_lanes(const Eight<T>& a, std::int64_t n) {
  Eight<T> c;
  PROBOX_LANES c.lane[i] = i < n ? a.lane[i] : T(1);
  return c;
}
PROBOX_INLINE Bits bits_of(const Doubles& a) {
  Bits b;
  std::memcpy(b.lane, a.lane, sizeof b.lane);
  return b;
}
PROBOX_INLINE Doubles from_bits(const Bits& b) {
  Doubles a;
  std::memcpy(a.lane, b.lane, sizeof a.lane);
  return a;
}
PROBOX_INLINE std::int64_t total(const Bits& a) {
  std::uint64_t sum = 0;
  PROBOX_LANES sum += a.lane[i];
  return static_cast<std::int64_t>(sum);
}
PROBOX_INLINE Doubles to_doubles(const Floats& a) {
  Doubles c;
  PROBOX_LANES c.lane[i] = static_cast<double>(a.lane[i]);
  return c;
}
PROBOX_INLINE Floats to_floats(const Doubles& a) {
  Floats c;
  PROBOX_LANES c.lane[i] = static_cast<float>(a.lane[i]);
  return c;
}
template <class T>
PROBOX_INLINE Eight<T> reversed(const Eight<T>& a) {
  Eight<T> c;
  PROBOX_LANES c.lane[i] = a.lane[kLanes - 1 - i];
  return c;
}
PROBOX_INLINE Doubles gather(const double* table, const Bits& index) {
  Doubles a;
  PROBOX_LANES a.lane[i] = table[index.lane[i]];
  return a;
}
#undef PROBOX_LANES

}  // namespace
