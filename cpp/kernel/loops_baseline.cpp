// The loops with vectors of 16 bytes, supported by every x86-64 (SSE2) and arm64 (NEON) machine.
#define PROBOX_VECTOR_BYTES 16
#include "loops.inl"

namespace probox {
extern const Loops baseline_loops;
const Loops baseline_loops = loops_here("baseline");
}  // namespace probox
