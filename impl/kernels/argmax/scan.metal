// A threadgroup a row: its readers look at every logit once.
constexpr uint LOGITS = CHUNK<T>;
const uint reader = thread_position_in_threadgroup.x;
const uint readers = threads_per_threadgroup.x;
const uint lane = thread_index_in_simdgroup;
const uint simdgroup = simdgroup_index_in_threadgroup;
const uint simdgroups = readers / 32;
const size_t row = threadgroup_position_in_grid.y;
const auto from = logits + row * vocab;
threadgroup float shared_maxima[32];
threadgroup uint shared_ids[32];

Reader own = begun();
#pragma clang loop unroll(disable)
for (uint chunk = reader; chunk * LOGITS < vocab; chunk += readers) {
  T values[LOGITS];
  read<LOGITS>(from, chunk * LOGITS, vocab, values);
  take<LOGITS>(own, values);
}
