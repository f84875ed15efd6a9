// Which thread runs next. A thread runs straight until it must wait for others.
#include "engine.h"

namespace assay {

u32 draw(Engine* e) {
  e->random = e->random * 1664525u + 1013904223u;
  return e->random >> 8;
}

static u32 first(u32 mask, u32 schedule) {
  return schedule == kReverse ? 31u - __builtin_clz(mask) : static_cast<u32>(__builtin_ctz(mask));
}

static u32 after(const Engine* e, u32 simdgroup) {
  if (e->schedule == kReverse) return simdgroup ? simdgroup - 1 : e->simdgroups - 1;
  return simdgroup + 1 < e->simdgroups ? simdgroup + 1 : 0;
}

// The simdgroup to look at first. Priorities change at random, as in probabilistic concurrency testing.
static u32 favourite(Engine* e) {
  if (e->schedule == kRoundRobin) return after(e, e->current);
  if (e->schedule != kPriorities) return e->current;
  if ((draw(e) & 7u) == 0) e->priority[e->current] = e->lowest ? --e->lowest : 0;
  u32 best = e->current, found = 0;
  for (u32 i = 0; i < e->simdgroups; i++) {
    const Simdgroup* s = &e->simdgroup[i];
    if (!(s->ready | s->unstarted) || (found && e->priority[i] <= e->priority[best])) continue;
    best = i;
    found = 1;
  }
  return best;
}

// Chooses the next thread to run into (current, lane). False: every thread of the threadgroup has returned.
bool choose(Engine* e) {
  const u32 schedule = e->schedule;
  if (schedule >= kRoundRobin) e->current = favourite(e);
  for (;;) {
    u32 looked = 0;
    for (; looked < e->simdgroups; looked++) {
      Simdgroup* s = &e->simdgroup[e->current];
      if (!(s->ready | s->unstarted) && s->waiting) resolve_divergence(e, s);
      if (const u32 runnable = s->ready | s->unstarted) {
        e->lane = first(runnable, schedule);
        e->letter_box = &s->lane[e->lane];
        return true;
      }
      e->current = after(e, e->current);
    }
    if (!e->arrived) return false;
    open_barrier(e);
    e->current = schedule == kReverse ? e->simdgroups - 1 : 0;
  }
}

// Runs the chosen thread in the caller's place and comes back when the caller itself is chosen again.
void leave(Engine* e, Fiber* self) {
  Simdgroup* s = &e->simdgroup[e->current];
  const u32 bit = 1u << e->lane;
  Fiber* next;
  if (s->ready & bit) {
    s->ready &= ~bit;
    next = s->fiber[e->lane];
    if (next == self) return;
  } else {
    next = take_fiber(e);
  }
  assay_switch(&self->sp, next->sp);
}

void wait(Engine* e, u32 simdgroup, u32 lane) {
  Fiber* self = e->simdgroup[simdgroup].fiber[lane];
  if (fault_of(e->launch) != kNone || !choose(e)) assay_switch(&self->sp, e->launcher_sp);
  leave(e, self);
}

}  // namespace assay
