// Barriers of a threadgroup.
#include "engine.h"

namespace assay {

static void report_exits(Engine* e) {
  const u32 site = static_cast<u32>(e->barrier_site);
  for (int early = 0; early < 2 && !e->check->diverged; early++)
    for (u32 i = 0; i < e->simdgroups; i++) {
      const Simdgroup* s = &e->simdgroup[i];
      const u32 gone = early ? s->early & s->exited : s->exited & ~s->early;
      if (!gone) continue;
      const u32 lane = static_cast<u32>(__builtin_ctz(gone));
      check_report(e->check, early ? kExitBeforeBarrier : kBarrierDiverges, site, early ? s->returned_at[lane] : 0,
                   e->barrier_thread, i * kLanes + lane);
      if (!early) e->check->diverged = 1;
      return;
    }
}

// The last lane to arrive may not wait, and then runs.
static u32 waiting_simdgroups(const Engine* e) {
  u32 simdgroups = 0, lanes = 0;
  for (u32 i = 0; i < e->simdgroups; i++) {
    simdgroups += e->simdgroup[i].at_barrier != 0;
    lanes += static_cast<u32>(__builtin_popcount(e->simdgroup[i].at_barrier));
  }
  return simdgroups + (lanes < e->arrived && !e->simdgroup[e->current].at_barrier);
}

void open_barrier(Engine* e) {
  // Threads that have returned count as arrived: MLX's own col_reduce_small relies on it.
  if (e->live < e->threads) count(&e->launch->barriers_after_exits);
  if (e->check) {
    if (e->live < e->threads) report_exits(e);
    check_barrier(e->check, kWholeThreadgroup, static_cast<u32>(e->barrier_site), e->barrier_flags);
  }
  if (e->counter) count_barrier(e->counter, e->live, waiting_simdgroups(e));
  for (u32 i = 0; i < e->simdgroups; i++) {
    e->simdgroup[i].ready |= e->simdgroup[i].at_barrier;
    e->simdgroup[i].at_barrier = 0;
  }
  e->arrived = 0;
}

static void arrive(Engine* e) {
  e->arrived++;
  if (e->arrived == e->live && fault_of(e->launch) == kNone && e->schedule < kRoundRobin) return open_barrier(e);
  e->simdgroup[e->current].at_barrier |= 1u << e->lane;
  wait(e, e->current, e->lane);
}

}  // namespace assay

using namespace assay;

extern "C" {

void assay_barrier(int site) {
  Engine* e = engine;
  if (!e->arrived) e->barrier_site = site;
  if (e->barrier_site != site && claim_fault(e->launch, kDivergentBarrier)) {
    e->launch->lines[0] = e->barrier_site;
    e->launch->lines[1] = site;
  }
  arrive(e);
}

void assay_flagged_barrier_at(int site, u32 flags, u64 key) {
  Engine* e = engine;
  Check* c = e->check;
  if (!c) return assay_barrier(site);
  const u32 thread = e->current * kLanes + e->lane;
  if (!e->arrived) {
    e->barrier_site = site;
    e->barrier_key = key;
    e->barrier_flags = ~0u;
    e->barrier_thread = thread;
  }
  e->simdgroup[e->current].early &= ~(1u << e->lane);
  e->barrier_flags &= flags;
  if (e->barrier_site != site || e->barrier_key != key) {
    check_report(c, kBarrierDiverges, static_cast<u32>(site), static_cast<u32>(e->barrier_site), thread,
                 e->barrier_thread);
    c->diverged = 1;
  }
  arrive(e);
}

void assay_flagged_barrier(int site, u32 flags) { assay_flagged_barrier_at(site, flags, 0); }

// A function without a result has met a `return` before its end.
void assay_returns(u32 site) {
  Simdgroup* s = &engine->simdgroup[engine->current];
  s->early |= 1u << engine->lane;
  s->returned_at[engine->lane] = site;
}

}  // extern "C"
