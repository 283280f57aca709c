// Problems that readers find in a file. Readers report a problem's name, its position and the value found; the messages
// and remedies are in src/probox/formats/problems.py under the same names.
#pragma once

#include <cstddef>

namespace probox {

// clang-format off: it would break the lines of these lists.
#define PROBOX_TROUBLES(X)                                                                             \
  X(cut_short) X(not_json) X(not_utf8) X(nested_too_deeply)                                            \
  X(wrong_type) X(wrong_length) X(number_too_large) X(duplicate_key) X(missing_key)                    \
  X(image_side) X(image_pixels) X(area) X(box_not_finite) X(box_inverted) X(iscrowd)                   \
  X(polygon_range) X(polygon_points) X(run_lengths_size) X(run_lengths_code) X(run_lengths_negative)   \
  X(run_lengths_total) X(mask_numbers)                                                                 \
  X(score_not_finite) X(score_range) X(all_scores_length) X(cls_prob_length) X(unknown_category)       \
  X(label_probs_length) X(box_of_pixels)
// clang-format on

enum class Trouble : std::size_t {
#define PROBOX_ENTRY(name) name,
  PROBOX_TROUBLES(PROBOX_ENTRY)
#undef PROBOX_ENTRY
};

inline constexpr const char* trouble_names[] = {
#define PROBOX_ENTRY(name) #name,
    PROBOX_TROUBLES(PROBOX_ENTRY)
#undef PROBOX_ENTRY
};

#undef PROBOX_TROUBLES

inline const char* name_of(Trouble trouble) { return trouble_names[static_cast<std::size_t>(trouble)]; }

// The only text of the readers that users see: nouns for the messages in Python.
namespace words {

inline constexpr const char *object = "an object", *list = "a list", *string = "a string", *number = "a number",
                            *whole_number = "a whole number",
                            *small_whole_number = "a whole number of at most 9223372036854775807", *value = "a value", *true_or_false = "true or false",
                            *null = "null";
inline constexpr const char *key = "a key in double quotes", *colon = "':' after the key",
                            *comma_in_object = "',' or '}'", *comma_in_list = "',' or ']'",
                            *end_of_file = "the end of the file", *closing_quote = "a closing quote",
                            *escape = "an escape such as \\n or \\u00e9", *surrogates = "a pair of surrogates",
                            *four_hex_digits = "four hexadecimal digits",
                            *no_leading_zero = "no digit after a leading 0",
                            *fraction = "a digit after the decimal point", *exponent = "a digit in the exponent";
inline constexpr const char *list_of = "a list of ", *list_of_numbers = "a list of numbers",
                            *list_of_detections = "a list of detections",
                            *detections_of_image = "a list of the image's detections",
                            *segmentation = "a list of polygons or an object with run lengths",
                            *counts = "a list of run lengths or a string";
inline constexpr const char *the_string = "the string ", *line = "line ", *column = ", column ",
                            *characters = " characters";

}  // namespace words

}  // namespace probox
