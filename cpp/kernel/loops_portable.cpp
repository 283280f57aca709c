// The loops without vectors: for every compiler and machine.
#define PROBOX_VECTOR_BYTES 0
#include "loops.inl"

namespace probox {
extern const Loops portable_loops;
const Loops portable_loops = loops_here("portable");
}  // namespace probox
