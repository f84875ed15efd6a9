// A launch: an engine takes threadgroups by number until none is left, beside others that do the same.
#include "engine.h"

namespace assay {

constinit thread_local Engine* engine __attribute__((tls_model("initial-exec")));
// An engine's stacks and their guard pages are two thousand mappings, and a process may have 65,530.
constexpr u32 kMostIdle = 8;
static Engine* idle_engines;
static u32 idle;
static volatile char idle_lock;

static Engine* take_engine() {
  assay_lock(&idle_lock);
  Engine* e = idle_engines;
  if (e) {
    idle_engines = e->next_idle;
    idle--;
  }
  assay_unlock(&idle_lock);
  if (e) return e;
  e = static_cast<Engine*>(assay_reserve(sizeof(Engine)));
  if (!e) return nullptr;
  e->stacks = static_cast<unsigned char*>(assay_reserve(kMaxThreads * kStackBytes));
  if (e->stacks) return e;
  assay_release(e, sizeof(Engine));
  return nullptr;
}

static void give_engine(Engine* e) {
  assay_lock(&idle_lock);
  const bool kept = idle < kMostIdle;
  if (kept) {
    e->next_idle = idle_engines;
    idle_engines = e;
    idle++;
  }
  assay_unlock(&idle_lock);
  if (kept) return;
  assay_release(e->stacks, kMaxThreads * kStackBytes);
  assay_release(e->guarded_memory, kMaxThreadgroupBytes + 2 * kPageBytes);
  assay_release(e->guard.stack, kSignalStackBytes);
  assay_release(e, sizeof(Engine));
}

// Runs threadgroups until none is left, or (true) until help would pay.
static bool run_grid(Engine* e) {
  Launch* l = e->launch;
  Position* p = &e->position;
  u32 groups[3], threads = 1;
  for (int i = 0; i < 3; i++) {
    groups[i] = static_cast<u32>((static_cast<u64>(l->grid[i]) + l->threadgroup[i] - 1) / l->threadgroup[i]);
    p->threadgroups_per_grid[i] = groups[i];
    p->threads_per_grid[i] = l->grid[i];
    p->dispatch_threads_per_threadgroup[i] = l->threadgroup[i];
    threads *= l->threadgroup[i];
  }
  p->dispatch_simdgroups_per_threadgroup = (threads + kLanes - 1) / kLanes;
  const u64 plane = static_cast<u64>(groups[0]) * groups[1], all = plane * groups[2];
  const u64 begun = l->may_ask ? assay_nanoseconds() : 0;
  for (u64 done = 1;; done++) {
    const u64 taken = __atomic_fetch_add(&l->next_threadgroup, 1, __ATOMIC_RELAXED);
    if (taken >= all) return false;
    const u64 n = e->schedule == kReverse ? all - 1 - taken : taken;
    const u32 at[3] = {static_cast<u32>(n % groups[0]), static_cast<u32>(n / groups[0] % groups[1]),
                       static_cast<u32>(n / plane)};
    run_threadgroup(e, at);
    if (fault_of(l) != kNone) {
      forget_fibers(e);
      return false;
    }
    if (l->may_ask && (done % 16 == 0 || !(done & (done - 1)))) {
      const u64 spent = assay_nanoseconds() - begun;
      if (spent > kAskAfter && all > taken + 1 && (all - taken - 1) * (spent / done) > kAskFor) return true;
    }
  }
}

static void begin_check(Engine* e) {
  Check* c = checking = e->check = e->launch->check;
  if (!c) return;
  c->stacks_begin = reinterpret_cast<u64>(e->stacks);
  c->stacks_bytes = kMaxThreads * kStackBytes;
  c->engine_begin = reinterpret_cast<u64>(e);
  c->engine_bytes = sizeof(Engine);
  c->simdgroup = &e->current;
  c->lane = &e->lane;
  check_begin(c);
}

static bool begin_count(Engine* e) {
  Counter* c = counting = e->counter = e->launch->counter;
  if (!c) return true;
  c->arena_begin = reinterpret_cast<u64>(e->memory);
  c->stacks_begin = reinterpret_cast<u64>(e->stacks);
  c->stacks_bytes = kMaxThreads * kStackBytes;
  c->simdgroup = &e->current;
  c->lane = &e->lane;
  return count_begin(c);
}

static bool begin_guard(Engine* e) {
  if (!e->guarded_memory) {
    e->guarded_memory = static_cast<unsigned char*>(assay_reserve(kMaxThreadgroupBytes + 2 * kPageBytes));
    if (!e->guarded_memory) return false;
    assay_protect(e->guarded_memory, kPageBytes);
    assay_protect(e->guarded_memory + kPageBytes + kMaxThreadgroupBytes, kPageBytes);
  }
  const u64 used = (e->launch->threadgroup_bytes + 15u) & ~15u;
  if (used <= kMaxThreadgroupBytes) e->memory = e->guarded_memory + kPageBytes + kMaxThreadgroupBytes - used;
  assay_guard_begin(&e->guard);
  return true;
}

}  // namespace assay

using namespace assay;

u64 assay_note_fault(u64 stack_pointer, u64 address, Touch touch) {
  Engine* e = engine;
  if (!e || !e->launch->guarded) return 0;
  const u64 stacks = reinterpret_cast<u64>(e->stacks), on = stack_pointer - stacks, at = address - stacks;
  constexpr u64 all = kMaxThreads * kStackBytes;
  if (on >= all) return 0;
  Launch* l = e->launch;
  const u64 beside = address - reinterpret_cast<u64>(e->guarded_memory);
  Fault fault = kStray;
  if (at < all && at % kStackBytes < kPageBytes) fault = kStackOverflow;
  if (beside < kMaxThreadgroupBytes + 2 * kPageBytes) fault = kStrayThreadgroup;
  if (claim_fault(l, fault)) {
    l->fault_address = address;
    l->fault_access = static_cast<u32>(touch);
  }
  return ((stacks + (on / kStackBytes + 1) * kStackBytes) & ~63ul) - 8;
}

void assay_leave_after_fault() {
  void* lost;
  assay_switch(&lost, engine->launcher_sp);
}

extern "C" {

// Runs what is left of a launch; others may do so at once. kWantsHelp: call again, and let others call too, with may_ask
// cleared.
u32 assay_launch(Launch* launch) {
  Engine* e = take_engine();
  if (!e) {
    // Another engine may be at work on it already.
    if (__atomic_load_n(&launch->next_threadgroup, __ATOMIC_RELAXED)) return kNoEngine;
    return launch->fault = kNoMemory;
  }
  e->launch = launch;
  e->schedule = launch->schedule & 0xffu;
  e->random = launch->schedule >> 8;
  engine = e;
  e->memory = e->arena;
  begin_check(e);
  if (!begin_count(e) || (launch->guarded && !begin_guard(e))) {
    give_engine(e);
    return launch->fault = kNoMemory;
  }
  const u64 mode = assay_enter_mode(!launch->keep_denormals);
  const bool wants_help = run_grid(e);
  assay_restore_mode(mode);
  if (e->check) check_end(e->check);
  if (e->counter) count_end(e->counter);
  if (launch->guarded) assay_guard_end(&e->guard);
  engine = nullptr;
  give_engine(e);
  return wants_help ? kWantsHelp : fault_of(launch);
}

// In a forked child: a lock may have been held by a thread that is not here.
void assay_forked() {
  assay_unlock(&idle_lock);
  assay_guard_forked();
}

void assay_abandon() {
  Engine* e = engine;
  e->launch->fault = kAbandoned;
  assay_switch(&e->simdgroup[e->current].fiber[e->lane]->sp, e->launcher_sp);
}

}  // extern "C"
