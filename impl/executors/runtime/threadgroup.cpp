// One threadgroup after the other: its threads, its memory, its place in the grid.
#include "engine.h"

namespace assay {

static void begin_threadgroup(Engine* e, u32 threads) {
  e->simdgroups = (threads + kLanes - 1) / kLanes;
  for (u32 i = 0; i < e->simdgroups; i++) {
    Simdgroup* s = &e->simdgroup[i];
    const u32 n = threads - i * kLanes;
    s->unstarted = n >= kLanes ? ~0u : (1u << n) - 1u;
    s->ready = s->waiting = s->at_barrier = s->exited = s->early = 0;
    s->mixed = false;
  }
  e->threads = e->live = threads;
  e->arrived = 0;
  e->current = e->schedule == kReverse ? e->simdgroups - 1 : 0;
  if (e->schedule == kPriorities) {
    e->lowest = 1u << 23;
    for (u32 i = 0; i < e->simdgroups; i++) e->priority[i] = (1u << 23) + draw(e);
  }
  if (e->check) check_threadgroup(e->check, e->simdgroups, e->launch->poison);
  if (e->counter) count_threadgroup(e->counter, threads);
  u32* word = reinterpret_cast<u32*>(e->memory);
  for (u32 i = 0; i < e->launch->threadgroup_bytes; i += 4) *word++ = e->launch->poison;
}

void run_threadgroup(Engine* e, const u32 at[3]) {
  Launch* l = e->launch;
  Position* p = &e->position;
  u32 threads = 1;
  for (int i = 0; i < 3; i++) {
    const u64 begin = static_cast<u64>(at[i]) * l->threadgroup[i];
    const u64 left = l->grid[i] - begin;
    const u32 size = left < l->threadgroup[i] ? static_cast<u32>(left) : l->threadgroup[i];
    p->threadgroup_position_in_grid[i] = at[i];
    p->thread_position_in_grid[i] = static_cast<u32>(begin);
    p->threads_per_threadgroup[i] = size;
    threads *= size;
  }
  p->simdgroups_per_threadgroup = (threads + kLanes - 1) / kLanes;
  begin_threadgroup(e, threads);
  if (!choose(e)) return;
  Fiber* f = take_fiber(e);
  assay_switch(&e->launcher_sp, f->sp);
  if (e->counter) count_threadgroup_end(e->counter);
}

}  // namespace assay

using namespace assay;

extern "C" {

void* assay_arena() { return engine->memory; }

}  // extern "C"
