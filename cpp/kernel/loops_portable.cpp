// The loops without vectors, for all compilers and machines.
#define PROBOX_VECTOR_BYTES 0
#include "loops.inl"

namespace probox {
extern const Loops portable_loops;
const Loops portable_loops = loops_here("portable");
}  // namespace probox
