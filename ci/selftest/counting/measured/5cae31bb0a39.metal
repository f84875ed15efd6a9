// Four elements a thread, a threadgroup's width apart, so that a simdgroup touches neighbours and one mask word. The sum
// is the contract: it makes NaN of +inf at a rejected id, and +0 of -0 at an allowed one.
constexpr uint ELEMENTS = 4;
const uint width = threads_per_threadgroup.x;
const size_t first = size_t(threadgroup_position_in_grid.x) * width * ELEMENTS + thread_position_in_threadgroup.x;
const size_t size = size_t(logits_shape[0]);
for (uint e = 0; e < ELEMENTS; ++e) {
  const size_t i = first + size_t(e) * width;
  if (i >= size) return;
  const uint id = uint(i) % vocab;
  const bool allowed = (bits[id >> 5] >> (id & 31)) & 1u;
  out[i] = logits[i] + T(allowed ? 0.0f : -INFINITY);
}
