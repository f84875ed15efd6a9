// Fibers, one a thread that has begun, on guarded stacks. A fiber whose thread has returned takes the next thread that has
// not begun, so threads that never meet a collective share one fiber and cost no switch.
#include "engine.h"

namespace assay {

static void fiber_main();

static void reset_fiber(Engine* e, Fiber* f) {
  const u64 index = static_cast<u64>(f - e->fiber);
  // Stacks of equal alignment would share a few cache sets: start each at its own offset.
  unsigned char* top = e->stacks + (index + 1) * kStackBytes - (index % 61) * 192;
  f->sp = assay_prepare(top, fiber_main);
}

Fiber* take_fiber(Engine* e) {
  if (Fiber* f = e->free_fibers) {
    e->free_fibers = f->next_free;
    return f;
  }
  Fiber* f = &e->fiber[e->fibers_made++];
  assay_protect(e->stacks + static_cast<u64>(f - e->fiber) * kStackBytes, kPageBytes);
  reset_fiber(e, f);
  return f;
}

void give_fiber(Engine* e, Fiber* f) {
  f->next_free = e->free_fibers;
  e->free_fibers = f;
}

void forget_fibers(Engine* e) {
  e->free_fibers = nullptr;
  for (u32 i = 0; i < e->fibers_made; i++) {
    reset_fiber(e, &e->fiber[i]);
    give_fiber(e, &e->fiber[i]);
  }
}

static void begin_thread(Engine* e, Fiber* self) {
  Simdgroup* s = &e->simdgroup[e->current];
  s->unstarted &= ~(1u << e->lane);
  s->fiber[e->lane] = self;
  Position p = e->position;
  const u32 index = e->current * kLanes + e->lane;
  const u32 sx = p.threads_per_threadgroup[0], sy = p.threads_per_threadgroup[1];
  p.thread_position_in_threadgroup[0] = index % sx;
  p.thread_position_in_threadgroup[1] = index / sx % sy;
  p.thread_position_in_threadgroup[2] = index / sx / sy;
  for (int i = 0; i < 3; i++)
    p.thread_position_in_grid[i] = p.thread_position_in_grid[i] + p.thread_position_in_threadgroup[i];
  p.thread_index_in_threadgroup = index;
  p.thread_index_in_simdgroup = e->lane;
  p.simdgroup_index_in_threadgroup = e->current;
  e->launch->thread(e->launch->buffers, &p);
}

static void fiber_main() {
  Engine* e = engine;
  Fiber* self = nullptr;
  for (;;) {
    if (!self) {
      // The one who switched here took this fiber for the chosen thread, so its stack tells which fiber it is.
      const u64 here = reinterpret_cast<u64>(__builtin_frame_address(0)) - reinterpret_cast<u64>(e->stacks);
      self = &e->fiber[here / kStackBytes];
    }
    begin_thread(e, self);
    if (e->check) e->simdgroup[e->current].exited |= 1u << e->lane;
    e->live--;
    if (!choose(e)) {
      give_fiber(e, self);
      assay_switch(&self->sp, e->launcher_sp);
    } else if (e->simdgroup[e->current].ready & (1u << e->lane)) {
      give_fiber(e, self);
      leave(e, self);
    }
  }
}

}  // namespace assay
