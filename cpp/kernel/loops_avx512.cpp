// The loops with vectors of 64 bytes; compiled for AVX-512 (F, BW, DQ, VL).
#define PROBOX_VECTOR_BYTES 64
#include "loops.inl"

namespace probox {
extern const Loops avx512_loops;
const Loops avx512_loops = {"avx512",
                            map_loops_here<float>(),
                            map_loops_here<double>(),
                            normal_cdfs,
                            tabulate,
                            start_weights,
                            next_moments,
                            add_taps,
                            plackett_row};
}  // namespace probox
