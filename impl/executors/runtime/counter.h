// What a counted launch remembers: how often each block of the kernel ran, and what the lanes of each simdgroup touched
// together.
#pragma once

#include "launch.h"

namespace assay {

enum Space : u32 { kDevice, kConstant, kThreadgroup, kPrivate, kElsewhere, kSpaces };

// Of what the kernel was given, and of its own constants: bytes that were read, or written, are marked by bits.
struct Extent {
  u64 begin, bytes;
  u32 space, unused;
  u64* read;
  u64* written;
};

// An access of the kernel. `writes`: 0 reads alone, 1 writes alone, 2 both.
struct Site {
  u32 writes, atomic;
};

// What a site did in one space, all requests together.
struct Tally {
  u64 requests, lanes, bytes, useful, sectors, lines, cycles, conflicts, serial;
};

struct Operation {
  u64 requests, lanes;
};
constexpr u32 kOperations = 64;

// What the lanes of a simdgroup do at one access in one turn of the loops around it.
struct Group {
  u64 key;
  u32 site, size, mask, unused;
  u64 at[kLanes];
};

// Groups of a simdgroup since its lanes last were together. `cursor`: where each lane's next group is expected.
struct Gathering {
  Group* group;
  u32* table;
  u32 groups, capacity, entered, sole;
  u32 cursor[kLanes];
};

struct Counter {
  // Python's to fill, and to read.
  u32 sites, blocks, extents, unused;
  const Site* site;
  const Extent* extent;
  Tally* tally;         // [sites][kSpaces]
  u64* block_lanes;     // [blocks]: executions by threads
  u64* block_requests;  // [blocks]: at least so many by simdgroups
  Operation operation[kOperations];
  u64 barriers, barrier_simdgroups, barrier_threads;
  u64 threads, threadgroups, simdgroups;
  u32 failed;  // for want of memory

  // The scheduler's and the counter's own.
  u64 arena_begin, stacks_begin, stacks_bytes;
  const u32* simdgroup;
  const u32* lane;
  u32 present, present_simdgroups;  // threads of this threadgroup
  u32* ran;                         // [kMaxThreads][blocks] of this threadgroup
  u32 last_extent;
  Gathering gathering[kMaxThreads / kLanes];
};

extern constinit thread_local Counter* counting __attribute__((tls_model("initial-exec")));

bool count_begin(Counter* c);
void count_end(Counter* c);
void count_threadgroup(Counter* c, u32 threads);
void count_threadgroup_end(Counter* c);
void count_barrier(Counter* c, u32 threads, u32 simdgroups);
void count_together(Counter* c, u32 simdgroup);
void settle_group(Counter* c, const Group& g);

}  // namespace assay
