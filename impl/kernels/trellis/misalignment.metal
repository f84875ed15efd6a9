// A float loaded from threadgroup memory at byte offsets that need not be multiples of four.
threadgroup float table[ENTRIES + 1];
const uint tid = thread_position_in_threadgroup.x;
for (uint i = tid; i < ENTRIES + 1; i += threads_per_threadgroup.x) table[i] = float(i + 1);
threadgroup_barrier(mem_flags::mem_threadgroup);
out[tid] = *(const threadgroup float*)((const threadgroup uchar*)table + offsets[tid]);
