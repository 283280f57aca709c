// The loops with vectors of 32 bytes; compiled for AVX2.
#define PROBOX_VECTOR_BYTES 32
#include "loops.inl"

namespace probox {
extern const Loops avx2_loops;
const Loops avx2_loops = loops_here("avx2");
}  // namespace probox
