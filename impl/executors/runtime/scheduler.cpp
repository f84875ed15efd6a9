// Runs the threads of a launch, threadgroup by threadgroup, a fiber a thread on guarded stacks.
//
// A thread runs straight until it must wait for others. A fiber whose thread has returned takes the next thread that has
// not begun, so threads that never meet a collective share one fiber and cost no switch. The last lane to arrive
// completes the collective for everybody and runs on.
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
  // A lane that waits elsewhere than the first one did: then arrival of everybody is not agreement.
  bool mixed;
  int site;
  Complete operation;
};

enum Fault : u32 { kNone = 0, kDivergentBarrier = 1, kNoMemory = 2 };
enum Schedule : u32 { kInOrder = 0, kReverse = 1 };

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
};

constexpr u64 kStackBytes = 256 * 1024;
constexpr u64 kPageBytes = 16 * 1024;  // arm64 macOS; a multiple of every other page

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
  int barrier_site;
  Engine* next_idle;
};

static thread_local Engine* engine __attribute__((tls_model("initial-exec")));
static Engine* idle_engines;
static volatile char idle_lock;

static void fiber_main();

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

// Lanes that wait at one call of one operation, beginning with the lowest, go on without the others, which sit at a
// barrier or at another call and cannot come.
static void resolve_divergence(Engine* e, Simdgroup* s) {
  const u32 leader = static_cast<u32>(__builtin_ctz(s->waiting));
  u32 mask = 0;
  for (u32 w = s->waiting; w; w &= w - 1) {
    const u32 i = static_cast<u32>(__builtin_ctz(w));
    if (s->lane[i].site == s->lane[leader].site && s->complete[i] == s->complete[leader]) mask |= 1u << i;
  }
  s->complete[leader](s->lane, mask);
  s->waiting &= ~mask;
  s->ready |= mask;
  e->launch->divergent_simdgroup_operations++;
}

static void open_barrier(Engine* e) {
  // Threads that have returned count as arrived: MLX's own col_reduce_small relies on it.
  if (e->live < e->threads) e->launch->barriers_after_exits++;
  for (u32 i = 0; i < e->simdgroups; i++) {
    e->simdgroup[i].ready |= e->simdgroup[i].at_barrier;
    e->simdgroup[i].at_barrier = 0;
  }
  e->arrived = 0;
}

// Chooses the next thread to run into (current, lane). False: every thread of the threadgroup has returned.
static bool choose(Engine* e) {
  const u32 schedule = e->launch->schedule;
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
      if (schedule == kReverse)
        e->current = e->current ? e->current - 1 : e->simdgroups - 1;
      else
        e->current = e->current + 1 < e->simdgroups ? e->current + 1 : 0;
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
  if (e->launch->fault != kNone || !choose(e)) assay_switch(&self->sp, e->launcher_sp);
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
    s->ready = s->waiting = s->at_barrier = 0;
    s->mixed = false;
  }
  e->threads = e->live = threads;
  e->arrived = 0;
  e->current = e->launch->schedule == kReverse ? e->simdgroups - 1 : 0;
  u32* word = reinterpret_cast<u32*>(e->arena);
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
  while (__atomic_test_and_set(&idle_lock, __ATOMIC_ACQUIRE)) {
  }
  Engine* e = idle_engines;
  if (e) idle_engines = e->next_idle;
  __atomic_clear(&idle_lock, __ATOMIC_RELEASE);
  if (e) return e;
  e = static_cast<Engine*>(assay_reserve(sizeof(Engine)));
  if (e) e->stacks = static_cast<unsigned char*>(assay_reserve(kMaxThreads * kStackBytes));
  return e && e->stacks ? e : nullptr;
}

static void give_engine(Engine* e) {
  while (__atomic_test_and_set(&idle_lock, __ATOMIC_ACQUIRE)) {
  }
  e->next_idle = idle_engines;
  idle_engines = e;
  __atomic_clear(&idle_lock, __ATOMIC_RELEASE);
}

static void forget_fibers(Engine* e) {
  e->free_fibers = nullptr;
  for (u32 i = 0; i < e->fibers_made; i++) {
    reset_fiber(e, &e->fiber[i]);
    give_fiber(e, &e->fiber[i]);
  }
}

static void run_grid(Engine* e) {
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
  u32 at[3];
  for (at[2] = 0; at[2] < groups[2]; at[2]++)
    for (at[1] = 0; at[1] < groups[1]; at[1]++)
      for (at[0] = 0; at[0] < groups[0]; at[0]++) {
        run_threadgroup(e, at);
        if (l->fault != kNone) return forget_fibers(e);
      }
}

}  // namespace assay

using namespace assay;

extern "C" {

u32 assay_launch(Launch* launch) {
  Engine* e = take_engine();
  if (!e) return launch->fault = kNoMemory;
  e->launch = launch;
  engine = e;
  const u64 mode = assay_enter_mode(!launch->keep_denormals);
  run_grid(e);
  assay_restore_mode(mode);
  give_engine(e);
  return launch->fault;
}

Lane* assay_lane() { return engine->letter_box; }

void* assay_arena() { return engine->arena; }

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
    complete(s->lane, mask);
    s->waiting = 0;
    s->ready = mask & ~bit;
    return;
  }
  wait(e, e->current, lane);
}

void assay_barrier(int site) {
  Engine* e = engine;
  Simdgroup* s = &e->simdgroup[e->current];
  if (!e->arrived) e->barrier_site = site;
  if (e->barrier_site != site) {
    e->launch->fault = kDivergentBarrier;
    e->launch->lines[0] = e->barrier_site;
    e->launch->lines[1] = site;
  }
  e->arrived++;
  if (e->arrived == e->live && e->launch->fault == kNone) {
    open_barrier(e);
    return;
  }
  s->at_barrier |= 1u << e->lane;
  wait(e, e->current, e->lane);
}

}  // extern "C"
