// Groups rows by image: image rows from ids, rows by image, and the start of each image.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace probox {

struct ImageGroups {
  std::vector<std::int64_t> image_rows;  // of each row; -1: unknown image
  std::vector<std::int64_t> numbers;  // number of earlier rows of its image; -1: unknown image
  std::vector<std::int64_t> order;  // rows of known images, by image, in their original order
  bool in_order = true;  // `order` contains every row in its original position
};

// Finds the index of ids among ascending known ids; equal ids are mostly contiguous.
class FindRow {
 public:
  FindRow(const std::int64_t* known, std::size_t count) : known_(known), end_(known + count) {}

  // -1 for an unknown id.
  std::int64_t operator()(std::int64_t id) {
    if (found_ == nullptr || id != id_) {
      found_ = std::lower_bound(known_, end_, id);
      id_ = id;
    }
    return found_ != end_ && *found_ == id ? found_ - known_ : -1;
  }

 private:
  const std::int64_t* known_;
  const std::int64_t* end_;
  const std::int64_t* found_ = nullptr;
  std::int64_t id_ = 0;
};

// The index of each id among ascending known ids, -1 for an unknown one.
inline std::vector<std::int64_t> rows_of_ids(const std::int64_t* ids, std::size_t n, const std::int64_t* known,
                                             std::size_t images) {
  std::vector<std::int64_t> rows(n);
  FindRow find(known, images);
  for (std::size_t k = 0; k < n; ++k) rows[k] = find(ids[k]);
  return rows;
}

// `known` is ascending.
inline ImageGroups group_by_image(const std::int64_t* ids, std::size_t n, const std::int64_t* known,
                                  std::size_t images) {
  ImageGroups groups;
  groups.image_rows.resize(n);
  groups.numbers.resize(n);
  groups.order.resize(n);
  std::vector<std::int64_t> counts(images, 0);
  std::int64_t before = -1;
  FindRow find(known, images);
  for (std::size_t k = 0; k < n; ++k) {
    const std::int64_t row = find(ids[k]);
    groups.in_order = groups.in_order && row >= 0 && row >= before;
    before = row;
    groups.image_rows[k] = row;
    groups.numbers[k] = row < 0 ? -1 : counts[static_cast<std::size_t>(row)]++;
    groups.order[k] = static_cast<std::int64_t>(k);
  }
  if (groups.in_order) return groups;
  std::int64_t begin = 0;
  for (std::int64_t& count : counts) {  // from here on: starts of the images' rows
    const std::int64_t own = count;
    count = begin;
    begin += own;
  }
  groups.order.resize(static_cast<std::size_t>(begin));
  for (std::size_t k = 0; k < n; ++k) {
    const std::int64_t image = groups.image_rows[k];
    if (image >= 0)
      groups.order[static_cast<std::size_t>(counts[static_cast<std::size_t>(image)] + groups.numbers[k])] =
          static_cast<std::int64_t>(k);
  }
  return groups;
}

// The start of each of `images` in ascending image rows; one more entry, the last being the number of rows.
inline std::vector<std::int64_t> image_offsets(const std::int64_t* image_rows, std::size_t n, std::size_t images) {
  std::vector<std::int64_t> offsets(images + 1);
  std::size_t k = 0;
  for (std::size_t image = 0; image <= images; ++image) {
    while (k < n && image_rows[k] < static_cast<std::int64_t>(image)) ++k;
    offsets[image] = static_cast<std::int64_t>(k);
  }
  return offsets;
}

}  // namespace probox
