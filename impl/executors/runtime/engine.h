// What the parts of the scheduler share: the state of a launch, and of the engine that runs its threadgroups.
#pragma once

#include "checker.h"
#include "counter.h"
#include "guard.h"
#include "launch.h"
#include "switch.h"

#pragma GCC visibility push(hidden)

namespace assay {

typedef void (*Complete)(Lane* lanes, u32 mask);

struct Fiber {
  void* sp;
  Fiber* next_free;
};

struct Simdgroup {
  Lane lane[kLanes];
  Complete complete[kLanes];
  // What tells calls of one line apart, see convergence.py.
  u64 key[kLanes];
  Fiber* fiber[kLanes];
  u32 unstarted, ready, waiting, at_barrier;
  // Lanes that have returned, and those of them that did so in the midst of a function, by a `return` of its own.
  u32 exited, early;
  u32 returned_at[kLanes];
  // A lane that waits elsewhere than the first one did: then arrival of everybody is not agreement.
  bool mixed;
  int site;
  Complete operation;
  u64 first_key;
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
  Counter* counter;
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
  u64 barrier_key;
  u32 barrier_flags, barrier_thread;
  u32 schedule, random, lowest;
  u32 priority[kMaxThreads / kLanes];
  Check* check;
  Counter* counter;
  // Threadgroup memory: the arena, or its guarded double, at whose end the launch's variables end.
  unsigned char* memory;
  unsigned char* guarded_memory;
  Guard guard;
  Engine* next_idle;
};

extern constinit thread_local Engine* engine __attribute__((tls_model("initial-exec")));

inline u32 fault_of(const Launch* l) { return __atomic_load_n(&l->fault, __ATOMIC_RELAXED); }

inline void count(u32* counter) { __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED); }

// The first fault is the launch's; other engines stop for it.
inline bool claim_fault(Launch* l, Fault fault) {
  u32 none = kNone;
  return __atomic_compare_exchange_n(&l->fault, &none, fault, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

// fiber.cpp
Fiber* take_fiber(Engine* e);
void give_fiber(Engine* e, Fiber* f);
void forget_fibers(Engine* e);

// schedule.cpp
u32 draw(Engine* e);
bool choose(Engine* e);
void leave(Engine* e, Fiber* self);
void wait(Engine* e, u32 simdgroup, u32 lane);

// collective.cpp
void resolve_divergence(Engine* e, Simdgroup* s);

// barrier.cpp
void open_barrier(Engine* e);

// threadgroup.cpp
void run_threadgroup(Engine* e, const u32 at[3]);

}  // namespace assay

#pragma GCC visibility pop
