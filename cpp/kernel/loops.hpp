// Loops over pixels. They are compiled for several instruction sets (loops_*.cpp) and selected when the module loads;
// results are bit-identical.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace probox {

// Loops process eight numbers at a time and access up to this many elements past the end of arrays, whose content is
// ignored.
constexpr int kPadding = 8;

// A block of a map's pixels: rows of `columns` values.
template <class T>
struct PixelBlock {
  const T* first;
  int rows, columns;
};

// Loops over maps of probabilities, which contain floats or doubles.
template <class T>
struct MapLoops {
  // Sum of log(p + epsilon), or of log(1 - p + epsilon) if `complement`, over blocks whose rows are `stride` apart.
  // Factors are multiplied and their exponents kept separately, so that all need only one logarithm.
  // `epsilon` must be a normal number below 1.
  double (*log_sum_blocks)(const PixelBlock<T>* blocks, int count, std::size_t stride, double epsilon, bool complement);

  // The same over the part of a row-major mask inside a block of pixels: rows y0.. and columns x0.., all stored
  // separately.
  double (*log_sum_runs)(const T* p, std::size_t stride, int x0, int y0, int rows, int columns,
                         const std::int32_t* runs, std::int64_t count, double epsilon, bool complement);

  // out[i] = log(p + epsilon), or log(1 - p + epsilon) if `complement`, of n values `stride` apart.
  // Up to 2 kPadding values past the end of `out` are written.
  void (*logs)(const T* p, std::size_t stride, int n, double epsilon, bool complement, double* out);

  // out[i] = a[i] * b[i] or a[i] * factor, limited to 1, and 0 below `cut`. Nothing past the end is accessed; `out`
  // must not overlap `a` and `b`.
  void (*multiply_row)(const T* a, const T* b, int n, T cut, T* out);
  void (*scale_row)(const T* a, T factor, int n, T cut, T* out);

  // A row of a corner's map: out[i] = factor value[i] - left - above[i] + origin, each step rounded to the map's type
  // as in the reference, then values below `cut` set to 0; written backwards if `reverse`. `above` may be null. Exactly
  // n values are written.
  void (*finish_row)(const double* value, double factor, T left, const T* above, T origin, int n, T cut, bool reverse,
                     T* out);

  // out = transposed `in`, which has `rows` rows of `columns`; rows of `out` are `stride` apart.
  void (*transpose)(const T* in, int rows, int columns, T* out, std::size_t stride);
};

constexpr int kPowers = 16;  // maximum number of terms of a Taylor series
constexpr int kGroup = 8;    // integrals whose moments are computed together

struct Loops {
  const char* name;
  MapLoops<float> of_floats;
  MapLoops<double> of_doubles;

  // cdf[i] = Phi((first + i - mean) / sigma), from a table of Phi and its density every 1/steps between -reach and
  // reach.
  void (*normal_cdfs)(double first, double mean, double sigma, int n, const double* entries, int steps, int reach,
                      double* cdf);

  // Fills a table of Phi^(k)(t) / k!, k below `rows`, at `points` arguments low + i * step (`phase` by `phase`: those
  // of i = 0, phases, 2 phases, ... first). Rows are `points` long, phases `length`, a multiple of kPadding.
  void (*tabulate)(double low, double step, int phases, int length, const double* entries, int steps, int reach,
                   int rows, double* table);

  // Integrals over kGroup adjacent parts of length 2 half, starting at `from`, by a quadrature rule on [-1, 1]:
  // now[j * kGroup + g] is phi at node j of part g, times the node's weight, and `ratio` its ratio to the same part
  // kGroup parts later (null if there are no later ones).
  void (*start_weights)(const double* node, const double* weight, int nodes, double from, double half, double* now,
                        double* ratio);

  // moments[k * kGroup + g] = int phi(v) (offset[g] + slope (v - middle of part g))^k dv over part g, for k below
  // `count`. Then `now` and `ratio` advance by kGroup parts; a ratio changes by the same factor, `change`, each time.
  void (*next_moments)(const double* node, int nodes, double half, const double* offset, double slope, double change,
                       int count, double* now, double* ratio, double* moments);

  // sum[i] += sum_k weight[k * kGroup] (table + k stride)[i] for i below n, and weight[0] for i from n up to `all`.
  void (*add_taps)(double* sum, int n, int all, const double* table, int stride, const double* weight, int taps);

  // out[i] = base[i] * factor + sum_j weight[j] exp((sine[j] h[i] k - (h[i]^2 + k^2) / 2) scale[j]). Infinite h must
  // not occur.
  void (*plackett_row)(const double* h, const double* base, int n, double k, double factor, const double* sine,
                       const double* scale, const double* weight, int nodes, double* out);
};

// The compiled instruction sets, best first; for each, the loops, or null if this machine does not support it.
constexpr int kInstructionSets = 4;
struct InstructionSet {
  const char* name;
  const Loops* loops;
};
const InstructionSet* instruction_sets();

// The loops in use: the best ones of this machine, unless others were selected.
extern std::atomic<const Loops*> chosen_loops;
inline const Loops& loops() { return *chosen_loops.load(std::memory_order_relaxed); }

template <class T>
const MapLoops<T>& map_loops();
template <>
inline const MapLoops<float>& map_loops<float>() {
  return loops().of_floats;
}
template <>
inline const MapLoops<double>& map_loops<double>() {
  return loops().of_doubles;
}

}  // namespace probox
