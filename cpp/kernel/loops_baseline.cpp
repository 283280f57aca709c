// The loops with vectors of 16 bytes, which every x86-64 (SSE2) and arm64 (NEON) machine has.
#define PROBOX_VECTOR_BYTES 16
#include "loops.inl"

namespace probox {
extern const Loops baseline_loops;
const Loops baseline_loops = {"baseline",
                              map_loops_here<float>(),
                              map_loops_here<double>(),
                              normal_cdfs,
                              tabulate,
                              start_weights,
                              next_moments,
                              add_taps,
                              plackett_row};
}  // namespace probox
