// What comes before what. Order within a threadgroup comes from barriers alone, and only for the memory that their flags
// name: two accesses by different threads race unless such a barrier lies between them. Operations of a simdgroup order
// nothing. Between threadgroups a fence, an atomic operation, and a fence on the other side order what came before.
#include "watch.h"

namespace assay {

void check_threadgroup(Check* c, u32 simdgroups, u32 poison) {
  settle(c);
  if (c->clock) c->order++;
  c->clock++;
  c->began[c->order] = c->began_now = c->clock;
  c->last_barrier = c->ordered[0] = c->ordered[1] = c->clock;
  for (u32 i = 0; i < simdgroups; i++) c->ordered_simdgroup[i][0] = c->ordered_simdgroup[i][1] = c->clock;
  c->fenced = c->acquiring = c->acquired = c->diverged = 0;
  for (u32 i = kBuffers; i < kRegions && c->region[i].kind; i++) {
    const Region& r = c->region[i];
    unsigned char* to = reinterpret_cast<unsigned char*>(r.begin);
    for (u64 k = 0; k < r.bytes; k++) to[k] = static_cast<unsigned char>(poison >> (8 * (k & 3)));
    for (u64 k = 0; k < r.bytes; k++) r.known[k] = 0;
  }
}

void check_barrier(Check* c, u32 simdgroup, u32 site, u32 flags) {
  settle(c);
  const u32 now = ++c->clock;
  c->barrier_site[now % kHistory] = site;
  c->barrier_flags[now % kHistory] = flags;
  c->barrier_of[now % kHistory] = simdgroup;
  u32* ordered = simdgroup == kWholeThreadgroup ? c->ordered : c->ordered_simdgroup[simdgroup];
  if (flags & 1u) ordered[0] = now;
  if (flags & 2u) ordered[1] = now;
}

u32 order_of(const Check* c, u32 when) {
  u32 low = 0, high = c->order;
  while (low < high) {
    const u32 middle = (low + high + 1) / 2;
    if (c->began[middle] <= when)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

// The first barrier after `when` for both threads, which was passed and does not order this memory; 0: there is none.
u32 barrier_after(const Check* c, u32 when, u32 thread, u32 other) {
  const u32 oldest = c->clock >= kHistory ? c->clock - kHistory + 1 : 1;
  for (u32 t = when + 1 > oldest ? when + 1 : oldest; t <= c->clock; t++) {
    const u32 of = c->barrier_of[t % kHistory];
    if (of == kWholeThreadgroup || (of == thread / kLanes && of == other / kLanes)) return t;
  }
  return 0;
}

bool ordered(const Check* c, Access a, u32 space, u32 thread, u32* kind) {
  if (a.when < c->began_now) {
    *kind = kRaceBetweenThreadgroups;
    return c->acquired && c->released[order_of(c, a.when)] >= a.when;
  }
  const u32 other = thread_of(a);
  if (other == thread || a.when < c->ordered[space]) return true;
  *kind = kRace;
  if (other / kLanes == thread / kLanes) {
    if (a.when < c->ordered_simdgroup[thread / kLanes][space]) return true;
    *kind = kRaceInSimdgroup;
  }
  return false;
}

}  // namespace assay

using namespace assay;

extern "C" {

void assay_fence(u32 flags) {
  Check* c = checking;
  if (!(flags & 1u)) return;
  c->fenced = 1;
  if (c->acquiring) c->acquired = 1;
}

}  // extern "C"
