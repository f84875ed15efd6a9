// What the checker knows of a launch: memory with bounds, who touched it last, and what was found.
#pragma once

#include "launch.h"

namespace assay {

// One access: `when` counts the barriers passed so far; `who` holds thread (10 bits), atomicity (1), the bytes of its
// unit (4) and site (17).
struct Access {
  u32 when, who;
};

// The shadow of one unit of memory: the last plain and the last atomic write, the last read, the last read by another
// lane of that simdgroup, and the last one from elsewhere. A writer that races with any reader since the last write races
// with one of them.
struct Cell {
  Access write, atomic, read[3];
};

enum RegionKind : u32 { kNoRegion, kInput, kOutput, kThreadgroupArray };

struct Region {
  u64 begin, bytes;
  u32 kind, unit_shift;
  Cell* cells;
  unsigned char* known;  // of each byte: whether it was written; null: the whole array was
  u64 atomics;           // whether an atomic has written to it
};

// Device arrays take the first places, threadgroup arrays the others. Every array lies in a span of addresses of its own,
// so that an address tells which array it was made from, inside or not.
constexpr u32 kBuffers = 64, kArrays = 128, kRegions = kBuffers + kArrays, kNowhere = 0xffff, kObjects = 0x10000;
constexpr u32 kArrayShift = 24;

enum EventKind : u32 {
  kRace = 1,
  kRaceInSimdgroup,
  kRaceBetweenThreadgroups,
  kSameValue,
  kBarrierFlags,
  kOutOfBounds,
  kMisaligned,
  kUninitialised,
  kBarrierDiverges,
  kSimdgroupDiverges,
  kExitBeforeBarrier,
  kInactiveLane,
  kShift,
  kHang,
  kWriteToInput,
  kSimdgroupPartial
};

// The size of an event of a lane that is not there, where a window that Metal does not have is why.
constexpr u32 kWindow = 1;

// An update reads what it then writes.
enum : u32 { kRead = 0, kWrite = 1, kAtomic = 2, kUpdate = 4 };

struct Event {
  u32 kind, site, other_site, count;
  u32 thread, other_thread, threadgroup, other_threadgroup;
  u32 region, how, other_how, size;
  u64 offset;
  u32 barrier_site, barrier_flags;
};

constexpr u32 kEvents = 512, kHistory = 256, kScratch = 256;

struct Object {
  u64 begin, bytes;
};

struct Pending {
  Event event;
  u64 at;
  u32 bytes, value;
};
constexpr u32 kPending = 16;

// An input as instrumented code sees it: nothing but its bounds is to be checked.
struct Input {
  u64 begin, bytes;
};

struct Check {
  u64 buffers_begin, buffer_shift, ticks;  // what is inlined knows where these are
  Input input[kBuffers];
  Region region[kRegions];
  // What lanes that are not there leave; `other_garbage` at the one place `garbage_site`.
  u32 garbage, other_garbage, garbage_site, objects;
  u32 private_poison;
  u64 arrays_begin;
  const Object* object;  // the program's constant arrays
  u32* began;            // of each threadgroup so far, in running order: the clock at its begin
  u32* released;         // of each: the clock at its last atomic after a fence
  u64 nanoseconds;       // 0: no deadline
  u32 events, dropped;
  Event event[kEvents];

  // From here on the scheduler's and the checker's own.
  u32 clock, began_now, order, last_barrier;
  u32 ordered[2];  // the clock at the last barrier that orders device, threadgroup memory
  u32 ordered_simdgroup[kMaxThreads / kLanes][2];
  u32 barrier_site[kHistory], barrier_flags[kHistory], barrier_of[kHistory];
  u32 fenced, acquiring, acquired, diverged;
  u64 stacks_begin, stacks_bytes, engine_begin, engine_bytes;
  const u32* simdgroup;
  const u32* lane;
  u64 deadline;
  unsigned short place[1024];  // of an event, by its key

  // Units of a write that met another: what it writes is known once it has happened.
  u32 pending;
  u32 scratch[kScratch / 4];
  Pending met[kPending];
};

extern constinit thread_local Check* checking __attribute__((tls_model("initial-exec")));

constexpr u32 kWholeThreadgroup = 0xffff;

void check_begin(Check* c);
void check_end(Check* c);
void check_threadgroup(Check* c, u32 simdgroups, u32 poison);
void check_barrier(Check* c, u32 simdgroup, u32 site, u32 flags);
void check_report(Check* c, u32 kind, u32 site, u32 other, u32 thread, u32 other_thread);

}  // namespace assay

// Ends a launch whose threads do not end by themselves. Does not return.
extern "C" void assay_abandon();
