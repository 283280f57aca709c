// The loops with vectors of 64 bytes; compiled for AVX-512 (F, BW, DQ, VL).
#define PROBOX_VECTOR_BYTES 64
#include "loops.inl"

namespace probox {
extern const Loops avx512_loops;
const Loops avx512_loops = loops_here("avx512");
}  // namespace probox
