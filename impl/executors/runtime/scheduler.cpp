// Runs the threads of a launch, threadgroup by threadgroup, a fiber a thread on guarded stacks.
//
// A thread runs straight until it must wait for others. A fiber whose thread has returned takes the next thread that has
// not begun, so threads that never meet a collective share one fiber and cost no switch. The last lane to arrive
// completes the collective for everybody and runs on.
#include "checker.h"
#include "guard.h"
#include "launch.h"
#include "switch.h"

namespace assay {

typedef void (*Complete)(Lane* lanes, u32 mask);

struct Fiber {
  void* sp;
  Fiber* next_free;
};

struct Simdgroup {
  Lane lane[kLanes];
  Complete complete[kLanes];
  Fiber* fiber[kLanes];
  u32 unstarted, ready, waiting, at_barrier;
  // Lanes that have returned, and those of them that did so in the midst of a function, by a `return` of its own.
  u32 exited, early;
  u32 returned_at[kLanes];
  // A lane that waits elsewhere than the first one did: then arrival of everybody is not agreement.
  bool mixed;
  int site;
  Complete operation;
};

enum Fault : u32 { kNone = 0, kDivergentBarrier = 1, kNoMemory = 2, kAbandoned = 3, kStray = 4, kStackOverflow = 5, kStrayThreadgroup = 6 };
// The low byte of a launch's schedule; above it stands the seed of kPriorities.
enum Schedule : u32 { kInOrder = 0, kReverse = 1, kRoundRobin = 2, kPriorities = 3 };

struct Launch {
  void (*thread)(const u64* buffers, const Position* position);
  const u64* buffers;
  u32 grid[3];
  u32 threadgroup[3];
  u32 threadgroup_bytes;
  u32 poison;
  u32 schedule;
  u32 fault;
  int lines[2];
  u32 divergent_simdgroup_operations;
  u32 barriers_after_exits;
  u32 keep_denormals;
  u32 simd_order;
  Check* check;
  u64 fault_address;
  u32 fault_access;
  u32 guarded;
  // Threadgroups are taken by number, by as many engines as run this launch.
  u64 next_threadgroup;
  // Whether to come back for help once the launch proves to be long.
  u32 may_ask;
};

constexpr u32 kWantsHelp = 100, kNoEngine = 101;
// Help costs about a tenth of a millisecond: asked for after as much work, where more than twice as much is left.
constexpr u64 kAskAfter = 250 * 1000, kAskFor = 500 * 1000;

constexpr u64 kStackBytes = 256 * 1024;

struct Engine {
  alignas(64) unsigned char arena[kMaxThreadgroupBytes];
  Simdgroup simdgroup[kMaxThreads / kLanes];
  Position position;
  Fiber fiber[kMaxThreads];
  u32 fibers_made;
  Fiber* free_fibers;
  unsigned char* stacks;
  void* launcher_sp;
  Launch* launch;
  u32 simdgroups, current, lane;
  Lane* letter_box;
  u32 threads, live, arrived;
  int barrier_site, operation_site;
  u32 barrier_flags, barrier_thread;
  u32 schedule, random, lowest;
  u32 priority[kMaxThreads / kLanes];
  Check* check;
  // Threadgroup memory: the arena, or its guarded double, at whose end the launch's variables end.
  unsigned char* memory;
  unsigned char* guarded_memory;
  Guard guard;
  Engine* next_idle;
};

static thread_local Engine* engine __attribute__((tls_model("initial-exec")));
static Engine* idle_engines;
static volatile char idle_lock;

static void fiber_main();

static u32 fault_of(const Launch* l) { return __atomic_load_n(&l->fault, __ATOMIC_RELAXED); }

static void count(u32* counter) { __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED); }

static u32 draw(Engine* e) {
  e->random = e->random * 1664525u + 1013904223u;
  return e->random >> 8;
}

static u32 first(u32 mask, u32 schedule) {
  return schedule == kReverse ? 31u - __builtin_clz(mask) : static_cast<u32>(__builtin_ctz(mask));
}

static void reset_fiber(Engine* e, Fiber* f) {
  const u64 index = static_cast<u64>(f - e->fiber);
  // Stacks of equal alignment would share a few cache sets: start each at its own offset.
  unsigned char* top = e->stacks + (index + 1) * kStackBytes - (index % 61) * 192;
  f->sp = assay_prepare(top, fiber_main);
}

static Fiber* take_fiber(Engine* e) {
  if (Fiber* f = e->free_fibers) {
    e->free_fibers = f->next_free;
    return f;
  }
  Fiber* f = &e->fiber[e->fibers_made++];
  assay_protect(e->stacks + static_cast<u64>(f - e->fiber) * kStackBytes, kPageBytes);
  reset_fiber(e, f);
  return f;
}

static void give_fiber(Engine* e, Fiber* f) {
  f->next_free = e->free_fibers;
  e->free_fibers = f;
}

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

// Lanes that wait elsewhere make an operation divergent, and so do those that have passed it by and come to the end of the
// kernel; lanes that have returned early do not. Most operations are those of the lanes that are there.
static void report_divergence(Engine* e, const Simdgroup* s, u32 leader, u32 mask) {
  const u32 elsewhere = (s->waiting | s->at_barrier) & ~mask, gone = s->exited & ~s->early;
  const u32 argument = s->lane[leader].argument;
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

// Lanes that wait at one call of one operation go on without the others, which sit at a barrier or at another call and
// cannot come. Those who wait at the first line come first: who has left a branch waits for who is in it, as on a GPU.
static void resolve_divergence(Engine* e, Simdgroup* s) {
  u32 leader = static_cast<u32>(__builtin_ctz(s->waiting)), mask = 0;
  for (u32 w = s->waiting; w; w &= w - 1)
    if (s->lane[__builtin_ctz(w)].site < s->lane[leader].site) leader = static_cast<u32>(__builtin_ctz(w));
  for (u32 w = s->waiting; w; w &= w - 1) {
    const u32 i = static_cast<u32>(__builtin_ctz(w));
    if (s->lane[i].site == s->lane[leader].site && s->complete[i] == s->complete[leader]) mask |= 1u << i;
  }
  if (e->check) {
    s->early &= ~mask;
    report_divergence(e, s, leader, mask);
  }
  complete(e, s, leader, mask);
  s->waiting &= ~mask;
  s->ready |= mask;
  count(&e->launch->divergent_simdgroup_operations);
}

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

static void open_barrier(Engine* e) {
  // Threads that have returned count as arrived: MLX's own col_reduce_small relies on it.
  if (e->live < e->threads) count(&e->launch->barriers_after_exits);
  if (e->check) {
    if (e->live < e->threads) report_exits(e);
    check_barrier(e->check, kWholeThreadgroup, static_cast<u32>(e->barrier_site), e->barrier_flags);
  }
  for (u32 i = 0; i < e->simdgroups; i++) {
    e->simdgroup[i].ready |= e->simdgroup[i].at_barrier;
    e->simdgroup[i].at_barrier = 0;
  }
  e->arrived = 0;
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
static bool choose(Engine* e) {
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
static void leave(Engine* e, Fiber* self) {
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

static void wait(Engine* e, u32 simdgroup, u32 lane) {
  Fiber* self = e->simdgroup[simdgroup].fiber[lane];
  if (fault_of(e->launch) != kNone || !choose(e)) assay_switch(&self->sp, e->launcher_sp);
  leave(e, self);
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
  u32* word = reinterpret_cast<u32*>(e->memory);
  for (u32 i = 0; i < e->launch->threadgroup_bytes; i += 4) *word++ = e->launch->poison;
}

static void run_threadgroup(Engine* e, const u32 at[3]) {
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
}

static Engine* take_engine() {
  assay_lock(&idle_lock);
  Engine* e = idle_engines;
  if (e) idle_engines = e->next_idle;
  assay_unlock(&idle_lock);
  if (e) return e;
  e = static_cast<Engine*>(assay_reserve(sizeof(Engine)));
  if (e) e->stacks = static_cast<unsigned char*>(assay_reserve(kMaxThreads * kStackBytes));
  return e && e->stacks ? e : nullptr;
}

static void give_engine(Engine* e) {
  assay_lock(&idle_lock);
  e->next_idle = idle_engines;
  idle_engines = e;
  assay_unlock(&idle_lock);
}

// The first fault is the launch's; other engines stop for it.
static bool claim_fault(Launch* l, Fault fault) {
  u32 none = kNone;
  return __atomic_compare_exchange_n(&l->fault, &none, fault, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void forget_fibers(Engine* e) {
  e->free_fibers = nullptr;
  for (u32 i = 0; i < e->fibers_made; i++) {
    reset_fiber(e, &e->fiber[i]);
    give_fiber(e, &e->fiber[i]);
  }
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

static void arrive(Engine* e) {
  e->arrived++;
  if (e->arrived == e->live && fault_of(e->launch) == kNone && e->schedule < kRoundRobin) return open_barrier(e);
  e->simdgroup[e->current].at_barrier |= 1u << e->lane;
  wait(e, e->current, e->lane);
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
  if (launch->guarded && !begin_guard(e)) {
    give_engine(e);
    return launch->fault = kNoMemory;
  }
  const u64 mode = assay_enter_mode(!launch->keep_denormals);
  const bool wants_help = run_grid(e);
  assay_restore_mode(mode);
  if (e->check) check_end(e->check);
  if (launch->guarded) assay_guard_end(&e->guard);
  engine = nullptr;
  give_engine(e);
  return wants_help ? kWantsHelp : fault_of(launch);
}

Lane* assay_lane() { return engine->letter_box; }

u32 assay_lane_index() { return engine->lane; }

void* assay_arena() { return engine->memory; }

u32 assay_simd_order() { return engine->launch->simd_order; }

void assay_simdgroup(int site, Complete complete) {
  Engine* e = engine;
  Simdgroup* s = &e->simdgroup[e->current];
  const u32 lane = e->lane, bit = 1u << lane;
  s->lane[lane].site = site;
  s->complete[lane] = complete;
  if (!s->waiting) {
    s->site = site;
    s->operation = complete;
    s->mixed = false;
  } else if (s->site != site || s->operation != complete) {
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

void assay_barrier(int site) {
  Engine* e = engine;
  if (!e->arrived) e->barrier_site = site;
  if (e->barrier_site != site && claim_fault(e->launch, kDivergentBarrier)) {
    e->launch->lines[0] = e->barrier_site;
    e->launch->lines[1] = site;
  }
  arrive(e);
}

void assay_flagged_barrier(int site, u32 flags) {
  Engine* e = engine;
  Check* c = e->check;
  if (!c) return assay_barrier(site);
  const u32 thread = e->current * kLanes + e->lane;
  if (!e->arrived) {
    e->barrier_site = site;
    e->barrier_flags = ~0u;
    e->barrier_thread = thread;
  }
  e->simdgroup[e->current].early &= ~(1u << e->lane);
  e->barrier_flags &= flags;
  if (e->barrier_site != site) {
    check_report(c, kBarrierDiverges, static_cast<u32>(site), static_cast<u32>(e->barrier_site), thread,
                 e->barrier_thread);
    c->diverged = 1;
  }
  arrive(e);
}

void assay_flagged_simdgroup_barrier(int site, u32 flags) {
  engine->letter_box->argument = flags;
  assay_simdgroup(site, meet);
}

// What a lane gets from one that is not there; `seen`: the lane itself is.
u32 assay_garbage(bool seen) {
  Engine* e = engine;
  if (!e->check) return 0xdeadbeefu;
  if (seen) check_report(e->check, kInactiveLane, static_cast<u32>(e->operation_site), 0, e->current * kLanes, 0);
  const Check* c = e->check;
  return c->garbage_site && c->garbage_site == static_cast<u32>(e->operation_site) ? c->other_garbage : c->garbage;
}

// A function without a result has met a `return` before its end.
void assay_returns(u32 site) {
  Simdgroup* s = &engine->simdgroup[engine->current];
  s->early |= 1u << engine->lane;
  s->returned_at[engine->lane] = site;
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
