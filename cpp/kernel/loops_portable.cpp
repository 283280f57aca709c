// The loops without vectors: for every compiler and machine.
#define PROBOX_VECTOR_BYTES 0
#include "loops.inl"

namespace probox {
extern const Loops portable_loops;
const Loops portable_loops = {"portable",
                              map_loops_here<float>(),
                              map_loops_here<double>(),
                              normal_cdfs,
                              tabulate,
                              start_weights,
                              next_moments,
                              add_taps,
                              plackett_row};
}  // namespace probox
