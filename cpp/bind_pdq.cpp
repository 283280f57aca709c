// PDQ: heatmaps, tables of pairs, and the scores of many images at once.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "assignment.hpp"
#include "parallel.hpp"
#include "score.hpp"
#include "signals.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace probox {
namespace {

template <class T, class... Shape>
using Array = nb::ndarray<const T, nb::numpy, nb::c_contig, nb::device::cpu, Shape...>;
using Vector32 = Array<std::int32_t, nb::ndim<1>>;
using Vector64 = Array<std::int64_t, nb::ndim<1>>;
using Maps = std::vector<nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>>;  // of the settings' precision

template <class T>
nb::ndarray<nb::numpy, T> owned(T* data, std::initializer_list<std::size_t> shape) {
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::ndarray<nb::numpy, T>(data, shape, owner);
}

void require(bool fine, const char* what) {
  if (!fine) throw std::invalid_argument(what);
}

// The columns of both tables, checked to fit each other: no index taken from an array is trusted.
struct Tables {
  Vector32 widths, heights;
  Vector64 object_offsets;
  Array<std::int32_t, nb::ndim<2>> mask_boxes;
  Vector64 mask_pixels, run_offsets;
  Array<std::int32_t, nb::ndim<2>> runs;
  Vector32 object_class;
  Vector64 detection_offsets;
  Array<double, nb::ndim<2>> boxes;
  Array<double, nb::ndim<4>> covariances;  // first axis 0: all boxes are plain
  Array<std::uint8_t, nb::ndim<1>> kinds;
  Array<float, nb::ndim<2>> label_probs;
  std::vector<const void*> heatmaps;

  void check(const Settings& settings, const Maps& maps, const Vector64& map_rows) {
    const std::size_t images = widths.shape(0), objects = mask_pixels.shape(0), detections = boxes.shape(0);
    require(heights.shape(0) == images, "heights do not fit widths");
    for (std::size_t i = 0; i < images; ++i)
      require(widths.data()[i] > 0 && heights.data()[i] > 0, "expected images of at least one pixel");
    check_offsets(object_offsets, images, objects, "object_offsets");
    check_offsets(detection_offsets, images, detections, "detection_offsets");
    check_offsets(run_offsets, objects, runs.shape(0), "run_offsets");
    require(mask_boxes.shape(0) == objects && mask_boxes.shape(1) == 4, "mask_boxes do not fit mask_pixels");
    require(runs.shape(1) == 3, "runs need three columns");
    require(object_class.shape(0) == objects, "object_class does not fit mask_pixels");
    require(boxes.shape(1) == 4, "boxes need four columns");
    require(kinds.shape(0) == detections && label_probs.shape(0) == detections, "detection columns differ in length");
    const std::size_t covariance_rows = covariances.shape(0);
    require(covariance_rows == 0 || (covariance_rows == detections && covariances.size() == 8 * detections),
            "covariances do not fit boxes");
    const auto classes = static_cast<std::int32_t>(label_probs.shape(1));
    for (std::size_t i = 0; i < objects; ++i)
      require(object_class.data()[i] >= 0 && object_class.data()[i] < classes, "object_class out of range");
    heatmaps.assign(detections, nullptr);
    require(maps.size() == map_rows.shape(0), "one heatmap per row number");
    std::vector<std::int64_t> image_of(detections);
    for (std::size_t i = 0; i < images; ++i)
      for (auto d = detection_offsets.data()[i]; d < detection_offsets.data()[i + 1]; ++d) image_of[d] = i;
    for (std::size_t k = 0; k < maps.size(); ++k) {
      const std::int64_t row = map_rows.data()[k];
      require(row >= 0 && row < static_cast<std::int64_t>(detections), "heatmap row out of range");
      const auto image = image_of[row];
      require(maps[k].ndim() == 2 && static_cast<int>(maps[k].shape(0)) == heights.data()[image] &&
                  static_cast<int>(maps[k].shape(1)) == widths.data()[image],
              "a heatmap differs from its image in size");
      require(maps[k].dtype() == (settings.single_precision ? nb::dtype<float>() : nb::dtype<double>()),
              "a heatmap is not of the settings' precision");
      heatmaps[row] = maps[k].data();
    }
    for (std::size_t d = 0; d < detections; ++d) {
      const std::uint8_t kind = kinds.data()[d];
      require(kind <= 2, "unknown kind of detection");
      require(kind != 1 || covariance_rows > 0, "a Gaussian box without covariance");
      require(kind != 2 || heatmaps[d] != nullptr, "a heatmap is missing");
    }
    for (std::size_t i = 0; i < images; ++i)
      for (auto o = object_offsets.data()[i]; o < object_offsets.data()[i + 1]; ++o) {
        const std::int32_t* b = mask_boxes.data() + 4 * o;
        require(mask_pixels.data()[o] > 0 && 0 <= b[0] && b[0] <= b[2] && b[2] < widths.data()[i] && 0 <= b[1] &&
                    b[1] <= b[3] && b[3] < heights.data()[i],
                "a mask is empty or outside its image");
        const std::int64_t first = run_offsets.data()[o], end = run_offsets.data()[o + 1];
        for (std::int64_t r = first; r < end; ++r) {
          const std::int32_t* run = runs.data() + 3 * r;
          require(b[1] <= run[0] && run[0] <= b[3] && b[0] <= run[1] && run[1] < run[2] && run[2] <= b[2] + 1,
                  "a run leaves its mask's box");
          // Runs are searched by row; out of order, the search would lead to rows that are not there.
          require(r == first || run[-3] <= run[0], "the runs of a mask are not sorted by row");
        }
      }
  }

  Image image(std::size_t i) const {
    std::vector<Mask> masks;
    const std::int64_t o0 = object_offsets.data()[i], o1 = object_offsets.data()[i + 1];
    const std::int64_t d0 = detection_offsets.data()[i], d1 = detection_offsets.data()[i + 1];
    for (std::int64_t o = o0; o < o1; ++o) {
      const std::int32_t* b = mask_boxes.data() + 4 * o;
      const std::int64_t r0 = run_offsets.data()[o], r1 = run_offsets.data()[o + 1];
      masks.push_back({b[0], b[1], b[2], b[3], mask_pixels.data()[o], runs.data() + 3 * r0, r1 - r0});
    }
    const auto classes = static_cast<int>(label_probs.shape(1));
    return {widths.data()[i],
            heights.data()[i],
            std::move(masks),
            object_class.data() + o0,
            static_cast<int>(d1 - d0),
            boxes.data() + 4 * d0,
            covariances.shape(0) ? covariances.data() + 8 * d0 : nullptr,
            kinds.data() + d0,
            heatmaps.data() + d0,
            label_probs.data() + d0 * classes,
            classes};
  }

  static void check_offsets(const Vector64& offsets, std::size_t count, std::size_t total, const char* what) {
    require(offsets.shape(0) == count + 1 && offsets.data()[0] == 0 &&
                offsets.data()[count] == static_cast<std::int64_t>(total),
            what);
    for (std::size_t i = 0; i < count; ++i) require(offsets.data()[i] <= offsets.data()[i + 1], what);
  }
};

void write(const Qualities& q, double* out) {
  out[0] = q.pairwise;
  out[1] = q.spatial;
  out[2] = q.label;
  out[3] = q.foreground;
  out[4] = q.background;
}

// Pairs of one image with a quality above 0.
// Pairs with a quality that one image may have; the error names the image's place.
constexpr std::size_t kMostPairs = std::size_t{1} << 24;

struct Pairs {
  std::vector<std::int64_t> detection, object;
  std::vector<double> qualities;
};

struct Pair {
  std::int64_t object, detection;
  Qualities qualities;
};
using PairList = std::vector<Pair>;

// Pairs in order of object, then detection; rows count from where the image starts.
Pairs by_object(PairList& pairs, std::int64_t first_object, std::int64_t first_detection) {
  const auto before = [](const Pair& a, const Pair& b) { return a.object < b.object; };
  if (!std::is_sorted(pairs.begin(), pairs.end(), before)) std::stable_sort(pairs.begin(), pairs.end(), before);
  Pairs found;
  found.detection.reserve(pairs.size());
  found.object.reserve(pairs.size());
  found.qualities.resize(5 * pairs.size());
  double* out = found.qualities.data();
  for (const Pair& pair : pairs) {
    found.detection.push_back(first_detection + pair.detection);
    found.object.push_back(first_object + pair.object);
    write(pair.qualities, out);
    out += 5;
  }
  return found;
}

template <class T>
std::vector<Pairs> score_all(const Tables& tables, const Settings& settings, int threads) {
  std::vector<Pairs> found(tables.widths.shape(0));
  threads = static_cast<int>(std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(found.size()), 1, std::max(threads, 1)));
  Stop stop(listen_to_python);
  std::vector<ImageScorer<T>> scorers;
  for (int i = 0; i < threads; ++i) scorers.emplace_back(settings, Pulse{&stop, i});
  for_each_index(static_cast<std::ptrdiff_t>(found.size()), threads, stop, [&](int worker, std::ptrdiff_t i) {
    const Image image = tables.image(i);
    PairList pairs;
    scorers[worker].qualities(image, false, [&](int d, const std::vector<Qualities>& column) {
      for (std::size_t o = 0; o < column.size(); ++o)
        if (column[o].pairwise > 0.0) pairs.push_back({static_cast<std::int64_t>(o), d, column[o]});
      if (pairs.size() > kMostPairs) throw std::length_error(std::to_string(i));
    });
    found[i] = by_object(pairs, tables.object_offsets.data()[i], tables.detection_offsets.data()[i]);
  });
  return found;
}

nb::tuple score_images(const Settings& settings, int threads, Vector32 widths, Vector32 heights,
                       Vector64 object_offsets, Array<std::int32_t, nb::ndim<2>> mask_boxes, Vector64 mask_pixels,
                       Vector64 run_offsets, Array<std::int32_t, nb::ndim<2>> runs, Vector32 object_class,
                       Vector64 detection_offsets, Array<double, nb::ndim<2>> boxes,
                       Array<double, nb::ndim<4>> covariances, Array<std::uint8_t, nb::ndim<1>> kinds,
                       Array<float, nb::ndim<2>> label_probs, const Maps& maps, Vector64 map_rows) {
  Tables tables{widths,       heights,           object_offsets, mask_boxes,  mask_pixels, run_offsets, runs,
                object_class, detection_offsets, boxes,          covariances, kinds,       label_probs, {}};
  tables.check(settings, maps, map_rows);
  std::vector<Pairs> found;
  std::size_t total = 0;
  {
    nb::gil_scoped_release release;
    found = settings.single_precision ? score_all<float>(tables, settings, threads)
                                      : score_all<double>(tables, settings, threads);
    for (const Pairs& pairs : found) total += pairs.object.size();
  }
  auto* detection = new std::int64_t[total];
  auto detection_array = owned(detection, {total});
  auto* object = new std::int64_t[total];
  auto object_array = owned(object, {total});
  auto* qualities = new double[5 * total];
  auto quality_array = owned(qualities, {total, 5});
  for (const Pairs& pairs : found) {
    detection = std::copy(pairs.detection.begin(), pairs.detection.end(), detection);
    object = std::copy(pairs.object.begin(), pairs.object.end(), object);
    qualities = std::copy(pairs.qualities.begin(), pairs.qualities.end(), qualities);
  }
  return nb::make_tuple(detection_array, object_array, quality_array);
}

// Pairs that share an object or a detection, directly or by way of others, compete; the others do not. Returns each
// group's pairs, begin <= pair < end, in their order.
std::vector<std::vector<std::int64_t>> competing(const Vector64& detection, const Vector64& object, std::int64_t begin,
                                                 std::int64_t end) {
  std::unordered_map<std::int64_t, std::int64_t> pair_of_object, pair_of_detection;
  std::vector<std::int64_t> parent(end - begin);
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](std::int64_t k) {
    while (parent[k] != k) k = parent[k] = parent[parent[k]];
    return k;
  };
  for (std::int64_t k = 0; k < end - begin; ++k) {
    const std::int64_t first = pair_of_object.emplace(object.data()[begin + k], k).first->second;
    const std::int64_t second = pair_of_detection.emplace(detection.data()[begin + k], k).first->second;
    parent[root(k)] = root(first);
    parent[root(k)] = root(second);
  }
  std::unordered_map<std::int64_t, std::size_t> group_of;
  std::vector<std::vector<std::int64_t>> groups;
  for (std::int64_t k = 0; k < end - begin; ++k) {
    const auto [at, is_new] = group_of.emplace(root(k), groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].push_back(begin + k);
  }
  return groups;
}

// Which pairs are matches. Pairs of an image stand next to each other, `offsets` says where.
nb::ndarray<nb::numpy, bool> assign_pairs(Vector64 offsets, Vector64 detection, Vector64 object,
                                          Array<double, nb::ndim<1>> quality, bool greedy) {
  const std::size_t n = detection.shape(0), images = offsets.shape(0) ? offsets.shape(0) - 1 : 0;
  require(object.shape(0) == n && quality.shape(0) == n, "pair columns differ in length");
  for (std::size_t k = 0; k < n; ++k)
    require(std::isfinite(quality.data()[k]) && quality.data()[k] >= 0.0, "qualities must be finite and not negative");
  Tables::check_offsets(offsets, images, n, "offsets");
  auto* matched = new bool[n]();
  auto array = owned(matched, {n});
  nb::gil_scoped_release release;
  Stop stop(listen_to_python);
  const Pulse pulse{&stop};
  std::vector<std::int64_t> rows, columns;
  std::vector<double> table;
  std::vector<std::int64_t> pair_at;
  const auto position = [](const std::vector<std::int64_t>& sorted, std::int64_t value) {
    return static_cast<std::size_t>(std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin());
  };
  const auto distinct = [](std::vector<std::int64_t>& values, const std::vector<std::int64_t>& pairs,
                           const std::int64_t* column) {
    values.clear();
    for (const std::int64_t k : pairs) values.push_back(column[k]);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  };
  const auto match = [&](const std::vector<std::int64_t>& pairs) {
    table.assign(rows.size() * columns.size(), 0.0);
    pair_at.assign(table.size(), -1);
    for (std::size_t at = 0; at < pairs.size(); ++at) {
      if (at % 4096 == 0) pulse();
      const std::int64_t k = pairs[at];
      const std::size_t cell =
          position(rows, object.data()[k]) * columns.size() + position(columns, detection.data()[k]);
      table[cell] = quality.data()[k];
      pair_at[cell] = k;
    }
    const int r = static_cast<int>(rows.size()), c = static_cast<int>(columns.size());
    const std::vector<int> chosen = greedy ? assign_greedily(table, r, c) : assign_optimally(table, r, c, pulse);
    for (int row = 0; row < r; ++row) {
      if (chosen[row] < 0) continue;
      const std::size_t cell = static_cast<std::size_t>(row) * columns.size() + chosen[row];
      if (table[cell] > 0.0) matched[pair_at[cell]] = true;
    }
  };
  constexpr std::size_t large = std::size_t{1} << 22;  // cells: a table of more is mostly empty, and far slower
  std::vector<std::int64_t> pairs;
  for (std::size_t i = 0; i < images; ++i) {
    pulse();
    const std::int64_t begin = offsets.data()[i], end = offsets.data()[i + 1];
    if (begin == end) continue;
    pairs.resize(end - begin);
    std::iota(pairs.begin(), pairs.end(), begin);
    distinct(rows, pairs, object.data());
    distinct(columns, pairs, detection.data());
    if (rows.size() * columns.size() <= large) {
      match(pairs);
      continue;
    }
    for (const std::vector<std::int64_t>& group : competing(detection, object, begin, end)) {
      distinct(rows, group, object.data());
      distinct(columns, group, detection.data());
      match(group);
    }
  }
  return array;
}

template <class T>
void tables_of(const Tables& tables, const Settings& settings, double* out) {
  Stop stop(listen_to_python);
  ImageScorer<T> scorer(settings, Pulse{&stop});
  const Image image = tables.image(0);
  scorer.qualities(image, true, [&](int d, const std::vector<Qualities>& column) {
    for (std::size_t o = 0; o < column.size(); ++o) write(column[o], out + 5 * (o * image.detections + d));
  });
}

nb::ndarray<nb::numpy, double> pair_qualities(
    const Settings& settings, Vector32 widths, Vector32 heights, Vector64 object_offsets,
    Array<std::int32_t, nb::ndim<2>> mask_boxes, Vector64 mask_pixels, Vector64 run_offsets,
    Array<std::int32_t, nb::ndim<2>> runs, Vector32 object_class, Vector64 detection_offsets,
    Array<double, nb::ndim<2>> boxes, Array<double, nb::ndim<4>> covariances, Array<std::uint8_t, nb::ndim<1>> kinds,
    Array<float, nb::ndim<2>> label_probs, const Maps& maps, Vector64 map_rows) {
  Tables tables{widths,       heights,           object_offsets, mask_boxes,  mask_pixels, run_offsets, runs,
                object_class, detection_offsets, boxes,          covariances, kinds,       label_probs, {}};
  tables.check(settings, maps, map_rows);
  require(widths.shape(0) == 1, "expected one image");
  const std::size_t objects = mask_pixels.shape(0), detections = boxes.shape(0);
  auto* out = new double[objects * detections * 5];
  auto array = owned(out, {objects, detections, 5});
  nb::gil_scoped_release release;
  if (settings.single_precision)
    tables_of<float>(tables, settings, out);
  else
    tables_of<double>(tables, settings, out);
  return array;
}

template <class T>
void dense_heatmap(const Settings& settings, int width, int height, const double* box, const double* covariances,
                   double* out) {
  const std::uint8_t kind = covariances ? 1 : 0;
  const Image image{width, height, {}, nullptr, 1, box, covariances, &kind, nullptr, nullptr, 0};
  ImageScorer<T> scorer(settings);
  const Grid<T> grid = scorer.heatmap(image, 0);
  if (grid.empty()) return;
  const auto entry = [](const Axis& axis, int pixel) {
    const int offset = pixel - axis.first;
    return axis.repeat && offset >= axis.middle
               ? (offset < axis.middle + axis.repeat ? axis.middle : offset - axis.repeat + 1)
               : offset;
  };
  for (int y = grid.y.first; y <= grid.y.last; ++y)
    for (int x = grid.x.first; x <= grid.x.last; ++x)
      out[static_cast<std::size_t>(y) * width + x] = *grid.at(entry(grid.y, y), entry(grid.x, x));
}

nb::ndarray<nb::numpy, double> heatmap(const Settings& settings, int width, int height,
                                       Array<double, nb::shape<4>> box, Array<double, nb::ndim<3>> covariances) {
  require(width > 0 && height > 0, "expected an image of at least one pixel");
  const bool plain = covariances.size() == 0;
  require(plain || covariances.size() == 8, "expected covariances of shape 2 x 2 x 2");
  const auto w = static_cast<std::size_t>(width), h = static_cast<std::size_t>(height);
  auto* out = new double[w * h]();
  auto array = owned(out, {h, w});
  const double* c = plain ? nullptr : covariances.data();
  if (settings.single_precision)
    dense_heatmap<float>(settings, width, height, box.data(), c, out);
  else
    dense_heatmap<double>(settings, width, height, box.data(), c, out);
  return array;
}

}  // namespace
}  // namespace probox

void bind_pdq(nb::module_& m) {
  using namespace probox;
  nb::class_<Settings>(m, "Settings", "The numbers of a convention that the kernel needs.")
      .def(nb::init<>())
      .def_rw("epsilon", &Settings::epsilon)
      .def_rw("region_of_interest", &Settings::region_of_interest)
      .def_rw("rough_sigmas", &Settings::rough_sigmas)
      .def_rw("mahalanobis", &Settings::mahalanobis)
      .def_rw("min_determinant", &Settings::min_determinant)
      .def_rw("min_probability", &Settings::min_probability)
      .def_rw("single_precision", &Settings::single_precision)
      .def_rw("snap_zero", &Settings::snap_zero)
      .def_rw("snap_one", &Settings::snap_one)
      .def_rw("min_quality", &Settings::min_quality)
      .def_rw("label_weight", &Settings::label_weight)
      .def_rw("mask_background", &Settings::mask_background);
  m.def("score_images", &score_images, "settings"_a, "threads"_a, "widths"_a, "heights"_a, "object_offsets"_a,
        "mask_boxes"_a, "mask_pixels"_a, "run_offsets"_a, "runs"_a, "object_class"_a, "detection_offsets"_a,
        "boxes"_a, "covariances"_a, "kinds"_a, "label_probs"_a, "heatmaps"_a, "heatmap_rows"_a,
        "Return the pairs of positive quality: detection rows, object rows, five qualities each.");
  m.def("assign_pairs", &assign_pairs, "offsets"_a, "detection"_a, "object"_a, "quality"_a, "greedy"_a,
        "Return which pairs are matches; the pairs of image i are offsets[i]..offsets[i + 1].");
  m.def("pair_qualities", &pair_qualities, "settings"_a, "widths"_a, "heights"_a, "object_offsets"_a, "mask_boxes"_a,
        "mask_pixels"_a, "run_offsets"_a, "runs"_a, "object_class"_a, "detection_offsets"_a, "boxes"_a,
        "covariances"_a, "kinds"_a, "label_probs"_a, "heatmaps"_a, "heatmap_rows"_a,
        "Return the five qualities of every pair of one image, objects x detections x 5.");
  m.def("heatmap", &heatmap, "settings"_a, "width"_a, "height"_a, "box"_a, "covariances"_a,
        "Return the H x W probabilities of one box; covariances of size 0: a plain box.");
  m.def("bivariate_cdf", &bivariate_cdf, "h"_a, "k"_a, "rho"_a, "Return Pr(X <= h, Y <= k) of standard Gaussians.");
  m.def("normal_cdf_table", [](double x) { return NormalTable::get().cdf(x); }, "x"_a,
        "Return Phi(x) as the fast paths of the kernel compute it.");
}
