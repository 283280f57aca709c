// The loops over pixels. They are compiled for several vector widths and chosen when the module loads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace probox {

// Sum of log(p + epsilon), or of log(1 - p + epsilon) if `complement`, over a block of rows.
// Factors are multiplied and their exponents kept apart, so one logarithm serves the whole block.
// `epsilon` must be a normal number below 1.
// Up to kPadding values past the end of each row are read, but do not count.
constexpr int kPadding = 8;
double log_sum_block(const float* p, std::size_t stride, int rows, int columns, double epsilon, bool complement);
double log_sum_block(const double* p, std::size_t stride, int rows, int columns, double epsilon, bool complement);

// out = log(p + epsilon), or log(1 - p + epsilon) if `complement`, of n values `stride` apart.
void logs(const float* p, std::size_t stride, int n, double epsilon, bool complement, double* out);
void logs(const double* p, std::size_t stride, int n, double epsilon, bool complement, double* out);

// out[i] = a[i] * b[i] or a[i] * factor, above 1 cut to 1, below `cut` set to 0.
void multiply_row(const float* a, const float* b, int n, double cut, float* out);
void multiply_row(const double* a, const double* b, int n, double cut, double* out);
void scale_row(const float* a, float factor, int n, double cut, float* out);
void scale_row(const double* a, double factor, int n, double cut, double* out);

// out[i] = factor * a[i].
void scale(const double* a, double factor, int n, double* out);

// sum[i] += sum_k weight[k] (table + k stride)[i] for i below n, and weight[0] for i from n up to `all`.
// Works in whole blocks of kPadding, so both arrays are touched past their ends.
void add_taps(double* sum, int n, int all, const double* table, int stride, const double* weight, int taps);

// cdf and density of a standard Gaussian at t[i], from a table of both every 1/steps between -reach and reach.
void normal_rows(const double* t, int n, const double* entries, int steps, int reach, double* cdf, double* density);

// out[i] = base[i] * factor + sum_j weight[j] exp((sine[j] h[i] k - (h[i]^2 + k^2) / 2) scale[j]); all arrays are touched
// up to kPadding past n. Infinite h must not occur.
void plackett_row(const double* h, const double* base, int n, double k, double factor, const double* sine,
                  const double* scale, const double* weight, int nodes, double* out);

// out = in turned about its diagonal; `in` has `rows` rows of `columns`.
void transpose(const double* in, int rows, int columns, double* out);

// Completes a table of Phi^(k)(t) / k!, n values each, of which rows 0 (Phi) and 1 (its density) are there:
// (k + 1) row(k + 1) = -t row(k) - (k - 1)/k row(k - 1), Hermite's recurrence.
void hermite_rows(const double* t, int n, int rows, double* table);

// moments[k] = int phi(v) (offset + slope (v - middle))^k dv over middle - half .. middle + half, for k below `count`,
// by a quadrature rule of eight nodes and weights on [-1, 1] (unused ones 0).
constexpr int kPowers = 16;
void gaussian_moments(const double* node, const double* weight, double middle, double half, double offset,
                      double slope, int count, double* moments);

// A row of a corner's map: out[i] = value[i] - left - above[i] + origin, each step rounded to the map's type as the
// reference does it, then values below `cut` set to 0; written backwards if `reverse`. `above` may be null.
void finish_row(const double* value, double left, const float* above, double origin, int n, double cut, bool reverse,
                float* out);
void finish_row(const double* value, double left, const double* above, double origin, int n, double cut, bool reverse,
                double* out);

// The part of a row-major mask that meets a block of pixels: rows y0.. and columns x0.., all of them stored one by one.
// Returns the sum of logarithms over the mask's pixels within the block.
double log_sum_runs(const float* p, std::size_t stride, int x0, int y0, int rows, int columns,
                    const std::int32_t* runs, std::int64_t count, double epsilon, bool complement);
double log_sum_runs(const double* p, std::size_t stride, int x0, int y0, int rows, int columns,
                    const std::int32_t* runs, std::int64_t count, double epsilon, bool complement);

}  // namespace probox
