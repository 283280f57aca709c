// Selection of the instruction set of loops over pixels.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "arrays.hpp"
#include "kernel/loops.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace probox;

namespace {

std::vector<std::string> available() {
  std::vector<std::string> names;
  for (int i = 0; i < kInstructionSets; ++i)
    if (instruction_sets()[i].loops != nullptr) names.emplace_back(instruction_sets()[i].name);
  return names;
}

std::string use(const std::string& name) {
  const std::string before = loops().name;
  for (int i = 0; i < kInstructionSets; ++i)
    if (instruction_sets()[i].loops != nullptr && name == instruction_sets()[i].name) {
      chosen_loops = instruction_sets()[i].loops;
      return before;
    }
  require(false, "this machine or build lacks that instruction set");
  return before;
}

}  // namespace

void bind_instruction_sets(nb::module_& m) {
  m.def("instruction_sets", &available,
        "Return the instruction sets that this build and this machine support, best first.");
  m.def("use_instruction_set", &use, "name"_a,
        "Select the instruction set of loops over pixels, and return the previous one. Results are bit-identical.");
}
