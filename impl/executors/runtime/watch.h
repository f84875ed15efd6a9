// What the parts of the checker share: how an access is remembered, and how what is found is told.
#pragma once

#include "checker.h"

#pragma GCC visibility push(hidden)

namespace assay {

inline u32 who(u32 thread, u32 how, u32 bytes, u32 site) {
  return thread | (how & kAtomic ? 1u << 10 : 0u) | bytes << 11 | site << 15;
}

inline u32 thread_of(Access a) { return a.who & 1023u; }
inline bool is_atomic(Access a) { return (a.who >> 10) & 1u; }
inline u32 bytes_of(Access a) { return (a.who >> 11) & 15u; }
inline u32 site_of(Access a) { return a.who >> 15; }
inline u32 thread_now(const Check* c) { return *c->simdgroup * kLanes + *c->lane; }

struct Now {
  u32 region, how, site, size, thread;
  u64 at;
};

// findings.cpp
void record(Check* c, const Event& found);
void found_at(Check* c, u32 kind, const Now& now, u64 offset);
void postpone(Check* c, const Event& found, u64 at, u32 bytes);
void settle(Check* c);

// order.cpp
u32 order_of(const Check* c, u32 when);
u32 barrier_after(const Check* c, u32 when, u32 thread, u32 other);
bool ordered(const Check* c, Access a, u32 space, u32 thread, u32* kind);

}  // namespace assay

#pragma GCC visibility pop
