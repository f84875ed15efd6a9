// The counter of a launch: accesses are gathered by what the lanes of a simdgroup do together, blocks by thread.
#include "counter.h"
#include "system.h"

namespace assay {

constinit thread_local Counter* counting __attribute__((tls_model("initial-exec")));

constexpr u32 kFirstCapacity = 256, kNobody = ~0u, kAheadOfCursor = 8;

static u64 ran_bytes(const Counter* c) { return static_cast<u64>(kMaxThreads) * c->blocks * sizeof(u32); }

bool count_begin(Counter* c) {
  c->ran = static_cast<u32*>(assay_reserve(ran_bytes(c)));
  return c->ran;
}

void count_end(Counter* c) {
  assay_release(c->ran, ran_bytes(c));
  for (Gathering& g : c->gathering) {
    assay_release(g.group, static_cast<u64>(g.capacity) * sizeof(Group));
    assay_release(g.table, static_cast<u64>(g.capacity) * 2 * sizeof(u32));
    g = Gathering{};
  }
}

void count_threadgroup(Counter* c, u32 threads) {
  c->present = threads;
  c->present_simdgroups = (threads + kLanes - 1) / kLanes;
  c->threads += threads;
  c->threadgroups++;
  c->simdgroups += c->present_simdgroups;
}

static u32 slot_of(u64 key, u32 capacity) {
  return static_cast<u32>((key * 0x9e3779b97f4a7c15ul) >> 32) & (capacity * 2 - 1);
}

static u32 next_slot(u32 slot, u32 capacity) { return (slot + 1) & (capacity * 2 - 1); }

static void settle(Counter* c, Gathering& g) {
  for (u32 i = 0; i < g.groups; i++) settle_group(c, g.group[i]);
  for (u32 i = 0; i < g.entered; i++)
    for (u32 slot = slot_of(g.group[i].key, g.capacity); g.table[slot]; slot = next_slot(slot, g.capacity)) g.table[slot] = 0;
  g.groups = g.entered = 0;
  g.sole = kNobody;
  for (u32& cursor : g.cursor) cursor = 0;
}

// The lanes of a simdgroup have met: what comes is apart from what was.
void count_together(Counter* c, u32 simdgroup) { settle(c, c->gathering[simdgroup]); }

void count_threadgroup_end(Counter* c) {
  for (u32 s = 0; s < c->present_simdgroups; s++) count_together(c, s);
  for (u32 first = 0; first < c->present; first += kLanes) {
    const u32 end = first + kLanes < c->present ? first + kLanes : c->present;
    for (u32 b = 0; b < c->blocks; b++) {
      u32 most = 0;
      u64 all = 0;
      for (u32 t = first; t < end; t++) {
        u32& n = c->ran[static_cast<u64>(t) * c->blocks + b];
        all += n;
        most = n > most ? n : most;
        n = 0;
      }
      c->block_lanes[b] += all;
      c->block_requests[b] += most;
    }
  }
}

void count_barrier(Counter* c, u32 threads, u32 simdgroups) {
  c->barriers++;
  c->barrier_threads += threads;
  c->barrier_simdgroups += simdgroups;
  for (u32 s = 0; s < c->present_simdgroups; s++) count_together(c, s);
}

static void enter(Gathering& g, u32 until) {
  for (; g.entered < until; g.entered++) {
    u32 slot = slot_of(g.group[g.entered].key, g.capacity);
    while (g.table[slot]) slot = next_slot(slot, g.capacity);
    g.table[slot] = g.entered + 1;
  }
}

static bool grow(Counter* c, Gathering& g) {
  const u32 capacity = g.capacity ? g.capacity * 2 : kFirstCapacity;
  Group* group = static_cast<Group*>(assay_reserve(static_cast<u64>(capacity) * sizeof(Group)));
  u32* table = static_cast<u32*>(assay_reserve(static_cast<u64>(capacity) * 2 * sizeof(u32)));
  if (!group || !table) {
    assay_release(group, static_cast<u64>(capacity) * sizeof(Group));
    assay_release(table, static_cast<u64>(capacity) * 2 * sizeof(u32));
    c->failed = 1;
    return false;
  }
  for (u32 i = 0; i < g.groups; i++) group[i] = g.group[i];
  assay_release(g.group, static_cast<u64>(g.capacity) * sizeof(Group));
  assay_release(g.table, static_cast<u64>(g.capacity) * 2 * sizeof(u32));
  g.group = group, g.table = table, g.capacity = capacity, g.entered = 0;
  return true;
}

// The group with this key of which the lane is no part yet; kNobody: there is none.
static u32 find(Gathering& g, u64 key, u32 lane) {
  const u32 cursor = g.cursor[lane], end = cursor + kAheadOfCursor < g.groups ? cursor + kAheadOfCursor : g.groups;
  for (u32 i = cursor; i < end; i++)
    if (g.group[i].key == key && !(g.group[i].mask >> lane & 1u)) return i;
  // Where all groups are the lane's own, each key of it is new.
  if (g.sole == lane || !g.groups) return kNobody;
  enter(g, g.groups);
  for (u32 slot = slot_of(key, g.capacity); g.table[slot]; slot = next_slot(slot, g.capacity)) {
    const u32 i = g.table[slot] - 1;
    if (g.group[i].key == key && !(g.group[i].mask >> lane & 1u)) return i;
  }
  return kNobody;
}

}  // namespace assay

using namespace assay;

extern "C" {

// An access of a lane, before it happens. `key` is equal for lanes that make it together.
void assay_touch(const void* pointer, u32 size, u32 site, u64 key) {
  Counter* c = counting;
  const u32 lane = *c->lane;
  Gathering& g = c->gathering[*c->simdgroup];
  u32 i = find(g, key, lane);
  if (i == kNobody) {
    if (g.groups == g.capacity && !grow(c, g)) return;
    g.sole = g.groups ? g.sole == lane ? lane : kNobody - 1 : lane;
    i = g.groups++;
    Group& made = g.group[i];
    made.key = key, made.site = site, made.size = size, made.mask = 0;
  }
  Group& group = g.group[i];
  group.mask |= 1u << lane;
  group.at[lane] = reinterpret_cast<u64>(pointer);
  g.cursor[lane] = i + 1;
}

// Where the thread counts its blocks.
u32* assay_blocks() {
  Counter* c = counting;
  return c->ran + static_cast<u64>(*c->simdgroup * kLanes + *c->lane) * c->blocks;
}

// The size of what Python lays out by itself.
u32 assay_counter_bytes() { return sizeof(Counter); }

}  // extern "C"
