// Operations of a simdgroup: the last lane to arrive completes one for everybody and runs on. Where lanes diverge, those
// that wait at one call act without the others.
#include "engine.h"
#include "watch.h"

namespace assay {

static void meet(Lane* lanes, u32 mask) {
  u32 flags = ~0u;
  for (u32 w = mask; w; w &= w - 1) flags &= lanes[__builtin_ctz(w)].argument;
  Engine* e = engine;
  if (e->check) check_barrier(e->check, e->current, static_cast<u32>(e->operation_site), flags);
}

static void complete(Engine* e, Simdgroup* s, u32 leader, u32 mask) {
  e->operation_site = s->lane[leader].site;
  s->complete[leader](s->lane, mask);
}

static u32 quads_of(u32 mask) { return ((mask | mask >> 1 | mask >> 2 | mask >> 3) & 0x11111111u) * 15u; }

// Lanes that wait elsewhere make an operation divergent, and so do those that have passed it by and come to the end of the
// kernel; lanes that have returned early do not. Most operations are those of the lanes that are there.
static void report_divergence(Engine* e, const Simdgroup* s, u32 leader, u32 mask) {
  const u32 argument = s->lane[leader].argument;
  const bool quads = s->complete[leader] != meet && (argument & kQuads);
  const u32 asked = (quads ? quads_of(mask) : ~0u) & ~mask;
  const u32 elsewhere = (s->waiting | s->at_barrier) & asked, gone = s->exited & ~s->early & asked;
  if (!(elsewhere | gone) || argument == kForBranches || (!elsewhere && e->check->diverged)) return;
  const bool partial = s->complete[leader] != meet && !(argument & kNeedsAll);
  if (!partial) e->check->diverged = 1;
  const u32 other = static_cast<u32>(__builtin_ctz(elsewhere ? elsewhere : gone));
  const bool waits = (s->waiting >> other) & 1u;
  const bool barriers = s->complete[leader] == meet && !(waits && s->complete[other] != meet);
  const int site = waits ? s->lane[other].site : elsewhere ? e->barrier_site : 0;
  check_report(e->check, barriers ? kBarrierDiverges : partial ? kSimdgroupPartial : kSimdgroupDiverges,
               static_cast<u32>(s->lane[leader].site), static_cast<u32>(site), e->current * kLanes + leader,
               e->current * kLanes + other);
}

static bool together(const Simdgroup* s, u32 a, u32 b) {
  return s->lane[a].site == s->lane[b].site && s->key[a] == s->key[b] && s->complete[a] == s->complete[b];
}

static bool before(const Simdgroup* s, u32 a, u32 b) {
  return s->key[a] < s->key[b] || (s->key[a] == s->key[b] && s->lane[a].site < s->lane[b].site);
}

// Lanes that wait at one call of one operation go on without the others, which sit at a barrier or at another call and
// cannot come. Those at the first call of the text come first: who has left a branch waits for who is in it, as on a GPU.
void resolve_divergence(Engine* e, Simdgroup* s) {
  u32 leader = static_cast<u32>(__builtin_ctz(s->waiting)), mask = 0;
  for (u32 w = s->waiting; w; w &= w - 1)
    if (before(s, static_cast<u32>(__builtin_ctz(w)), leader)) leader = static_cast<u32>(__builtin_ctz(w));
  for (u32 w = s->waiting; w; w &= w - 1) {
    const u32 i = static_cast<u32>(__builtin_ctz(w));
    if (together(s, i, leader)) mask |= 1u << i;
  }
  if (e->check) {
    s->early &= ~mask;
    report_divergence(e, s, leader, mask);
  }
  const u32 elsewhere = (s->waiting | s->at_barrier) & ~mask;
  if (elsewhere && s->lane[leader].argument != kForBranches) count(&e->launch->divergent_simdgroup_operations);
  complete(e, s, leader, mask);
  s->waiting &= ~mask;
  s->ready |= mask;
}

static u32 nothing(u32 why) {
  Engine* e = engine;
  Check* c = e->check;
  if (!c) return 0xdeadbeefu;
  const u32 site = static_cast<u32>(e->operation_site);
  found_at(c, kInactiveLane, Now{kNowhere, kRead, site, why, e->current * kLanes, 0}, 0);
  return c->garbage_site && c->garbage_site == site ? c->other_garbage : c->garbage;
}

}  // namespace assay

using namespace assay;

extern "C" {

Lane* assay_lane() { return engine->letter_box; }

u32 assay_lane_index() { return engine->lane; }

u32 assay_simd_order() { return engine->launch->simd_order; }

void assay_simdgroup_at(int site, Complete complete, u64 key) {
  Engine* e = engine;
  Simdgroup* s = &e->simdgroup[e->current];
  const u32 lane = e->lane, bit = 1u << lane;
  s->lane[lane].site = site;
  s->complete[lane] = complete;
  s->key[lane] = key;
  if (!s->waiting) {
    s->site = site;
    s->operation = complete;
    s->first_key = key;
    s->mixed = false;
  } else if (s->site != site || s->operation != complete || s->first_key != key) {
    s->mixed = true;
  }
  s->waiting |= bit;
  // Nobody else of the simdgroup can still come, and all came to the same call.
  if (!s->mixed && !(s->unstarted | s->ready | s->at_barrier)) {
    const u32 mask = s->waiting;
    e->operation_site = site;
    if (e->check) {
      s->early &= ~mask;
      if (s->exited) report_divergence(e, s, lane, mask);
    }
    complete(s->lane, mask);
    s->waiting = 0;
    s->ready = mask & ~bit;
    if (e->schedule < kRoundRobin) return;
    s->ready = mask;
  }
  wait(e, e->current, lane);
}

// Where nothing tells a call from others of its line.
void assay_simdgroup(int site, Complete complete) { assay_simdgroup_at(site, complete, 0); }

void assay_flagged_simdgroup_barrier_at(int site, u32 flags, u64 key) {
  engine->letter_box->argument = flags;
  assay_simdgroup_at(site, meet, key);
}

void assay_flagged_simdgroup_barrier(int site, u32 flags) { assay_flagged_simdgroup_barrier_at(site, flags, 0); }

// Counts an operation that the lanes of a mask complete.
void assay_operation(u32 kind, u32 mask) {
  Engine* e = engine;
  Counter* c = e->counter;
  c->operation[kind].requests++;
  c->operation[kind].lanes += static_cast<u32>(__builtin_popcount(mask));
  const Simdgroup* s = &e->simdgroup[e->current];
  if (!(s->unstarted | s->ready | s->at_barrier | (s->waiting & ~mask))) count_together(c, e->current);
}

// What a lane gets from one that is not there.
u32 assay_garbage() { return nothing(0); }

// What a lane gets by a window that Metal does not have.
u32 assay_windowless() { return nothing(kWindow); }

// Whether this run asks what depends on the garbage of the operation at hand.
bool assay_garbage_varied() {
  const Check* c = engine->check;
  return c && c->garbage_site && c->garbage_site == static_cast<u32>(engine->operation_site);
}

}  // extern "C"
