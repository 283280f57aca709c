// Eight numbers in vectors of PROBOX_VECTOR_BYTES, with the vector types of GCC and Clang. Part of lanes.hpp.

namespace {

constexpr int kDoubleParts = 64 / PROBOX_VECTOR_BYTES;
constexpr int kPerDouble = PROBOX_VECTOR_BYTES / 8;  // lanes per part of Doubles
typedef double DoublePart __attribute__((vector_size(PROBOX_VECTOR_BYTES)));
typedef std::uint64_t BitsPart __attribute__((vector_size(PROBOX_VECTOR_BYTES)));
typedef std::int64_t WholePart __attribute__((vector_size(PROBOX_VECTOR_BYTES)));

// Floats have half the size of doubles: parts have the same number of lanes, so that they convert one by one.
typedef float FloatPart __attribute__((vector_size(PROBOX_VECTOR_BYTES / 2)));

#define PROBOX_PARTS(expression) PROBOX_UNROLL for (int part = 0; part < kDoubleParts; ++part) expression

struct Doubles {
  DoublePart part[kDoubleParts];
};

struct Floats {
#if PROBOX_VECTOR_BYTES == 32
  typedef float Whole __attribute__((vector_size(32)));
  Whole whole;
#else
  FloatPart part[kDoubleParts];
#endif
};

PROBOX_INLINE DoublePart part_of(double x) { return DoublePart{} + x; }

PROBOX_INLINE Doubles filled(double x) {
  Doubles a;
  PROBOX_PARTS(a.part[part] = part_of(x));
  return a;
}

#define PROBOX_OPERATOR(op)                                               \
  PROBOX_INLINE Doubles operator op(const Doubles& a, const Doubles& b) { \
    Doubles c;                                                            \
    PROBOX_PARTS(c.part[part] = a.part[part] op b.part[part]);            \
    return c;                                                             \
  }
PROBOX_OPERATOR(+)
PROBOX_OPERATOR(-)
PROBOX_OPERATOR(*)
PROBOX_OPERATOR(/)
#undef PROBOX_OPERATOR

// Part by part: copying the whole would go through memory.
PROBOX_INLINE Doubles load(const double* p) {
  Doubles a;
  PROBOX_PARTS(std::memcpy(&a.part[part], p + part * kPerDouble, sizeof a.part[part]));
  return a;
}

PROBOX_INLINE void store(const Doubles& a, double* p) {
  PROBOX_PARTS(std::memcpy(p + part * kPerDouble, &a.part[part], sizeof a.part[part]));
}

PROBOX_INLINE Doubles largest(const Doubles& a, const Doubles& b) {
  Doubles c;
  PROBOX_PARTS(c.part[part] = a.part[part] > b.part[part] ? a.part[part] : b.part[part]);
  return c;
}

PROBOX_INLINE Doubles smallest(const Doubles& a, const Doubles& b) {
  Doubles c;
  PROBOX_PARTS(c.part[part] = a.part[part] < b.part[part] ? a.part[part] : b.part[part]);
  return c;
}

// a, set to 0 where it is below the limit.
PROBOX_INLINE Doubles zero_below(const Doubles& a, const Doubles& limit) {
  Doubles c;
  PROBOX_PARTS(c.part[part] = a.part[part] < limit.part[part] ? DoublePart{} : a.part[part]);
  return c;
}

// The first n lanes of a; 1 in the others.
PROBOX_INLINE Doubles first_lanes(const Doubles& a, std::int64_t n) {
  Doubles c;
  for (int part = 0; part < kDoubleParts; ++part) {
    WholePart lane;
    for (int i = 0; i < kPerDouble; ++i) lane[i] = part * kPerDouble + i;
    c.part[part] = lane < n ? a.part[part] : part_of(1.0);
  }
  return c;
}

struct Bits {
  BitsPart part[kDoubleParts];
};

// A cast between vector types keeps the bits.
PROBOX_INLINE Bits bits_of(const Doubles& a) {
  Bits b;
  PROBOX_PARTS(b.part[part] = (BitsPart)a.part[part]);
  return b;
}

PROBOX_INLINE Doubles from_bits(const Bits& b) {
  Doubles a;
  PROBOX_PARTS(a.part[part] = (DoublePart)b.part[part]);
  return a;
}

#define PROBOX_OPERATOR(op, right)                         \
  PROBOX_INLINE Bits operator op(const Bits& a, right b) { \
    Bits c;                                                \
    PROBOX_PARTS(c.part[part] = a.part[part] op b);        \
    return c;                                              \
  }
PROBOX_OPERATOR(+, std::uint64_t)
PROBOX_OPERATOR(-, std::uint64_t)
PROBOX_OPERATOR(&, std::uint64_t)
PROBOX_OPERATOR(|, std::uint64_t)
PROBOX_OPERATOR(<<, int)
PROBOX_OPERATOR(>>, int)
#undef PROBOX_OPERATOR

PROBOX_INLINE Bits operator+(const Bits& a, const Bits& b) {
  Bits c;
  PROBOX_PARTS(c.part[part] = a.part[part] + b.part[part]);
  return c;
}

PROBOX_INLINE std::int64_t total(const Bits& a) {
  std::uint64_t sum = 0;
  for (int part = 0; part < kDoubleParts; ++part)
    for (int i = 0; i < kPerDouble; ++i) sum += a.part[part][i];
  return static_cast<std::int64_t>(sum);
}

#if PROBOX_VECTOR_BYTES == 32

PROBOX_INLINE Floats load(const float* p) {
  Floats a;
  std::memcpy(&a.whole, p, sizeof a.whole);
  return a;
}
PROBOX_INLINE void store(const Floats& a, float* p) { std::memcpy(p, &a.whole, sizeof a.whole); }
PROBOX_INLINE Floats filled(float x) { return {Floats::Whole{} + x}; }
PROBOX_INLINE Floats operator+(const Floats& a, const Floats& b) { return {a.whole + b.whole}; }
PROBOX_INLINE Floats operator-(const Floats& a, const Floats& b) { return {a.whole - b.whole}; }
PROBOX_INLINE Floats operator*(const Floats& a, const Floats& b) { return {a.whole * b.whole}; }
PROBOX_INLINE Floats smallest(const Floats& a, const Floats& b) { return {a.whole < b.whole ? a.whole : b.whole}; }
PROBOX_INLINE Floats zero_below(const Floats& a, const Floats& limit) {
  return {a.whole < limit.whole ? Floats::Whole{} : a.whole};
}
PROBOX_INLINE Floats first_lanes(const Floats& a, std::int32_t n) {
  typedef std::int32_t Lanes __attribute__((vector_size(32)));
  const Lanes lane = {0, 1, 2, 3, 4, 5, 6, 7};
  return {lane < n ? a.whole : filled(1.0f).whole};
}
PROBOX_INLINE Doubles to_doubles(const Floats& a) {
  const Floats::Whole f = a.whole;
  const FloatPart low = __builtin_shufflevector(f, f, 0, 1, 2, 3), high = __builtin_shufflevector(f, f, 4, 5, 6, 7);
  return {{__builtin_convertvector(low, DoublePart), __builtin_convertvector(high, DoublePart)}};
}
PROBOX_INLINE Floats to_floats(const Doubles& a) {
  const FloatPart low = __builtin_convertvector(a.part[0], FloatPart);
  const FloatPart high = __builtin_convertvector(a.part[1], FloatPart);
  return {__builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7)};
}
PROBOX_INLINE Floats reversed(const Floats& a) {
  return {__builtin_shufflevector(a.whole, a.whole, 7, 6, 5, 4, 3, 2, 1, 0)};
}

#else

PROBOX_INLINE Floats load(const float* p) {
  Floats a;
  PROBOX_PARTS(std::memcpy(&a.part[part], p + part * kPerDouble, sizeof a.part[part]));
  return a;
}
PROBOX_INLINE void store(const Floats& a, float* p) {
  PROBOX_PARTS(std::memcpy(p + part * kPerDouble, &a.part[part], sizeof a.part[part]));
}
PROBOX_INLINE Floats filled(float x) {
  Floats a;
  PROBOX_PARTS(a.part[part] = FloatPart{} + x);
  return a;
}
#define PROBOX_OPERATOR(op)                                            \
  PROBOX_INLINE Floats operator op(const Floats& a, const Floats& b) { \
    Floats c;                                                          \
    PROBOX_PARTS(c.part[part] = a.part[part] op b.part[part]);         \
    return c;                                                          \
  }
PROBOX_OPERATOR(+)
PROBOX_OPERATOR(-)
PROBOX_OPERATOR(*)
#undef PROBOX_OPERATOR
PROBOX_INLINE Floats smallest(const Floats& a, const Floats& b) {
  Floats c;
  PROBOX_PARTS(c.part[part] = a.part[part] < b.part[part] ? a.part[part] : b.part[part]);
  return c;
}
PROBOX_INLINE Floats zero_below(const Floats& a, const Floats& limit) {
  Floats c;
  PROBOX_PARTS(c.part[part] = a.part[part] < limit.part[part] ? FloatPart{} : a.part[part]);
  return c;
}
PROBOX_INLINE Floats first_lanes(const Floats& a, std::int32_t n) {
  typedef std::int32_t Lanes __attribute__((vector_size(PROBOX_VECTOR_BYTES / 2)));
  Floats c;
  for (int part = 0; part < kDoubleParts; ++part) {
    Lanes lane;
    for (int i = 0; i < kPerDouble; ++i) lane[i] = part * kPerDouble + i;
    c.part[part] = lane < n ? a.part[part] : FloatPart{} + 1.0f;
  }
  return c;
}
PROBOX_INLINE Doubles to_doubles(const Floats& a) {
  Doubles c;
  PROBOX_PARTS(c.part[part] = __builtin_convertvector(a.part[part], DoublePart));
  return c;
}
PROBOX_INLINE Floats to_floats(const Doubles& a) {
  Floats c;
  PROBOX_PARTS(c.part[part] = __builtin_convertvector(a.part[part], FloatPart));
  return c;
}
PROBOX_INLINE Floats reversed(const Floats& a) {
  Floats c;
  for (int part = 0; part < kDoubleParts; ++part)
    for (int i = 0; i < kPerDouble; ++i) c.part[part][i] = a.part[kDoubleParts - 1 - part][kPerDouble - 1 - i];
  return c;
}

#endif

// Table values at `index`, for all lanes.
PROBOX_INLINE Doubles gather(const double* table, const Bits& index) {
  Doubles a;
#if PROBOX_VECTOR_BYTES == 32
  for (int part = 0; part < kDoubleParts; ++part) {
    const BitsPart at = index.part[part];
    a.part[part] = DoublePart{table[at[0]], table[at[1]], table[at[2]], table[at[3]]};
  }
#else
  for (int part = 0; part < kDoubleParts; ++part)
    for (int i = 0; i < kPerDouble; ++i) a.part[part][i] = table[index.part[part][i]];
#endif
  return a;
}

PROBOX_INLINE Doubles reversed(const Doubles& a) {
  Doubles c;
  for (int part = 0; part < kDoubleParts; ++part)
    for (int i = 0; i < kPerDouble; ++i) c.part[part][i] = a.part[kDoubleParts - 1 - part][kPerDouble - 1 - i];
  return c;
}

#undef PROBOX_PARTS

}  // namespace
