// Eight numbers at a time, whatever the machine's vectors hold. Only for files that are compiled for one instruction set:
// PROBOX_VECTOR_BYTES is the size of its vectors, 0 for plain loops. (Compilers without vector types always get those.)
//
// An operation treats each of the eight lanes alone and rounds as the scalar one does, so results are the same to the bit
// for every size. (Products and sums must not be contracted: the build says -ffp-contract=off.)
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__GNUC__)
#define PROBOX_INLINE inline __attribute__((always_inline))
#else
#define PROBOX_INLINE inline
#endif
// Before a loop over the parts of something that should stay in registers.
#if defined(__clang__)
#define PROBOX_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define PROBOX_UNROLL _Pragma("GCC unroll 8")
#else
#define PROBOX_UNROLL
#endif

// Everything here has internal linkage: the linker must not take one file's machine code for another's.
namespace {

constexpr int kLanes = 8;

#if defined(__GNUC__) && PROBOX_VECTOR_BYTES > 0
#define PROBOX_VECTOR_TYPES 1

constexpr int kDoubleParts = 64 / PROBOX_VECTOR_BYTES;
constexpr int kPerDouble = PROBOX_VECTOR_BYTES / 8;  // lanes of a part of Doubles
typedef double DoublePart __attribute__((vector_size(PROBOX_VECTOR_BYTES)));
typedef std::uint64_t BitsPart __attribute__((vector_size(PROBOX_VECTOR_BYTES)));
typedef std::int64_t WholePart __attribute__((vector_size(PROBOX_VECTOR_BYTES)));

// Floats take half the room of doubles: as many to a part as doubles, so that parts convert one by one.
typedef float FloatPart __attribute__((vector_size(PROBOX_VECTOR_BYTES / 2)));

#define PROBOX_PARTS(expression) \
  PROBOX_UNROLL for (int part = 0; part < kDoubleParts; ++part) expression

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

#define PROBOX_OPERATOR(op)                                                    \
  PROBOX_INLINE Doubles operator op(const Doubles& a, const Doubles& b) {      \
    Doubles c;                                                                 \
    PROBOX_PARTS(c.part[part] = a.part[part] op b.part[part]);                 \
    return c;                                                                  \
  }
PROBOX_OPERATOR(+)
PROBOX_OPERATOR(-)
PROBOX_OPERATOR(*)
PROBOX_OPERATOR(/)
#undef PROBOX_OPERATOR

// Part by part: a copy of the whole would go through memory.
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

// a, and 0 where a is below the limit.
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

// A cast from one type of vector to another keeps the bits.
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

#define PROBOX_OPERATOR(op, right)                                             \
  PROBOX_INLINE Bits operator op(const Bits& a, right b) {                     \
    Bits c;                                                                    \
    PROBOX_PARTS(c.part[part] = a.part[part] op b);                            \
    return c;                                                                  \
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
#define PROBOX_OPERATOR(op)                                                    \
  PROBOX_INLINE Floats operator op(const Floats& a, const Floats& b) {         \
    Floats c;                                                                  \
    PROBOX_PARTS(c.part[part] = a.part[part] op b.part[part]);                 \
    return c;                                                                  \
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

// What `row` finds in the table; both are spread over lanes.
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

#undef PROBOX_PARTS

#else  // plain loops, for compilers without vectors of their own

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

#define PROBOX_OPERATOR(op)                                                    \
  template <class T>                                                           \
  PROBOX_INLINE Eight<T> operator op(const Eight<T>& a, const Eight<T>& b) {   \
    Eight<T> c;                                                                \
    PROBOX_LANES c.lane[i] = a.lane[i] op b.lane[i];                           \
    return c;                                                                  \
  }
PROBOX_OPERATOR(+)
PROBOX_OPERATOR(-)
PROBOX_OPERATOR(*)
PROBOX_OPERATOR(/)
#undef PROBOX_OPERATOR
#define PROBOX_OPERATOR(op, right)                                             \
  PROBOX_INLINE Bits operator op(const Bits& a, right b) {                     \
    Bits c;                                                                    \
    PROBOX_LANES c.lane[i] = a.lane[i] op b;                                   \
    return c;                                                                  \
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

#endif

PROBOX_INLINE Doubles operator+(const Doubles& a, double x) { return a + filled(x); }
PROBOX_INLINE Doubles operator-(const Doubles& a, double x) { return a - filled(x); }
PROBOX_INLINE Doubles operator*(const Doubles& a, double x) { return a * filled(x); }
PROBOX_INLINE Floats operator+(const Floats& a, float x) { return a + filled(x); }
PROBOX_INLINE Floats operator-(const Floats& a, float x) { return a - filled(x); }
PROBOX_INLINE Floats operator*(const Floats& a, float x) { return a * filled(x); }

// The eight lanes of either kind, by the type of one.
template <class T>
struct LanesOf;
template <>
struct LanesOf<double> {
  typedef Doubles type;
  static PROBOX_INLINE Doubles from(const Doubles& a) { return a; }
};
template <>
struct LanesOf<float> {
  typedef Floats type;
  static PROBOX_INLINE Floats from(const Doubles& a) { return to_floats(a); }
};

#if defined(PROBOX_VECTOR_TYPES)
PROBOX_INLINE Doubles reversed(const Doubles& a) {
  Doubles c;
  for (int part = 0; part < kDoubleParts; ++part)
    for (int i = 0; i < kPerDouble; ++i) c.part[part][i] = a.part[kDoubleParts - 1 - part][kPerDouble - 1 - i];
  return c;
}
#endif

}  // namespace
