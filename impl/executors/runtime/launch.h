// What a launch is, seen from the scheduler (plain C++) and from a kernel (C++ for OpenCL), which share no other header.
#pragma once

namespace assay {

typedef unsigned int u32;
typedef unsigned long u64;

constexpr u32 kLanes = 32;
constexpr u32 kMaxThreads = 1024;
constexpr u32 kMaxThreadgroupBytes = 32 * 1024;

// The argument of an operation that is made for branches, where lanes are missing.
constexpr u32 kForBranches = 1u << 31;
// The argument of an operation that has no meaning for the lanes that are there alone.
constexpr u32 kNeedsAll = 1u << 30;
// In the argument of an operation that is each quad's own.
constexpr u32 kQuads = 1u << 29;

// One lane's letter box in its simdgroup: 16 bytes hold the widest value that a simdgroup operation moves.
struct Lane {
  u64 value[2];
  u64 fill[2];
  u64 result[2];
  u32 argument;
  int site;
};

// The values behind Metal's attributes, in the thread's own copy.
struct Position {
  u32 thread_position_in_grid[3];
  u32 thread_position_in_threadgroup[3];
  u32 threadgroup_position_in_grid[3];
  u32 threadgroups_per_grid[3];
  u32 threads_per_grid[3];
  u32 threads_per_threadgroup[3];
  u32 dispatch_threads_per_threadgroup[3];
  u32 thread_index_in_threadgroup;
  u32 thread_index_in_simdgroup;
  u32 simdgroup_index_in_threadgroup;
  u32 simdgroups_per_threadgroup;
  u32 dispatch_simdgroups_per_threadgroup;
};

}  // namespace assay
