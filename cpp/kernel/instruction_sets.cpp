// Detection of the compiled loops that this machine can run.
#include "loops.hpp"

#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace probox {

extern const Loops portable_loops;
#if defined(__GNUC__)
extern const Loops baseline_loops;
#endif
#if defined(PROBOX_X86)
extern const Loops avx2_loops;
extern const Loops avx512_loops;
#endif

namespace {

#if defined(PROBOX_X86) && defined(_MSC_VER)
bool bit(int value, int number) { return (value >> number) & 1; }

// Whether the processor and the operating system support the instructions.
bool has(bool wide) {
  int leaf[4];
  __cpuid(leaf, 0);
  if (leaf[0] < 7) return false;
  __cpuid(leaf, 1);
  if (!bit(leaf[2], 27) || !bit(leaf[2], 28)) return false;  // OSXSAVE, AVX
  const unsigned long long saved = _xgetbv(0);
  __cpuidex(leaf, 7, 0);
  if (!wide) return (saved & 6) == 6 && bit(leaf[1], 5);
  return (saved & 0xe6) == 0xe6 && bit(leaf[1], 16) && bit(leaf[1], 17) && bit(leaf[1], 30) && bit(leaf[1], 31);
}
bool has_avx2() { return has(false); }
bool has_avx512() { return has(true); }
#elif defined(PROBOX_X86)
bool has_avx2() { return __builtin_cpu_supports("avx2"); }
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

}  // namespace

const InstructionSet* instruction_sets() {
  static const InstructionSet sets[kInstructionSets] = {
#if defined(PROBOX_X86)
      {"avx512", has_avx512() ? &avx512_loops : nullptr},
      {"avx2", has_avx2() ? &avx2_loops : nullptr},
#else
      {"avx512", nullptr},
      {"avx2", nullptr},
#endif
#if defined(__GNUC__)
      {"baseline", &baseline_loops},
#else
      {"baseline", nullptr},
#endif
      {"portable", &portable_loops},
  };
  return sets;
}

namespace {
const Loops* best() {
  for (int i = 0; i < kInstructionSets; ++i)
    if (instruction_sets()[i].loops != nullptr) return instruction_sets()[i].loops;
  return &portable_loops;
}
}  // namespace

std::atomic<const Loops*> chosen_loops{best()};

}  // namespace probox
