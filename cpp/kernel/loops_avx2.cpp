// The loops with vectors of 32 bytes; compiled for AVX2.
#define PROBOX_VECTOR_BYTES 32
#include "loops.inl"

namespace probox {
extern const Loops avx2_loops;
const Loops avx2_loops = {"avx2",
                          map_loops_here<float>(),
                          map_loops_here<double>(),
                          normal_cdfs,
                          tabulate,
                          start_weights,
                          next_moments,
                          add_taps,
                          plackett_row};
}  // namespace probox
