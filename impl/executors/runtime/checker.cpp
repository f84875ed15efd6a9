// The checker: every access of an instrumented kernel comes here first, with the place in the text where it stands.
//
// Order within a threadgroup comes from barriers alone, and only for the memory that their flags name: two accesses by
// different threads race unless such a barrier lies between them. Operations of a simdgroup order nothing. Between
// threadgroups a fence, an atomic operation, and a fence on the other side order what came before.
#include "checker.h"

extern "C" {
void* mmap(void*, unsigned long, int, int, int, long);
int clock_gettime(int, long*);
}

namespace assay {

thread_local Check* checking __attribute__((tls_model("initial-exec")));

#if defined(__APPLE__)
constexpr int kMonotonic = 6, kPrivate = 0x1002;
#else
constexpr int kMonotonic = 1, kPrivate = 0x22 | 0x4000;  // and MAP_NORESERVE: most of it is never touched
#endif

static u64 nanoseconds() {
  long now[2];
  clock_gettime(kMonotonic, now);
  return static_cast<u64>(now[0]) * 1000000000ul + static_cast<u64>(now[1]);
}

static u32 who(u32 thread, u32 how, u32 bytes, u32 site) {
  return thread | (how & kAtomic ? 1u << 10 : 0u) | bytes << 11 | site << 15;
}
static u32 thread_of(Access a) { return a.who & 1023u; }
static bool is_atomic(Access a) { return (a.who >> 10) & 1u; }
static u32 bytes_of(Access a) { return (a.who >> 11) & 15u; }
static u32 site_of(Access a) { return a.who >> 15; }
static u32 thread_now(const Check* c) { return *c->simdgroup * kLanes + *c->lane; }

static void record(Check* c, const Event& found) {
  const u32 key = found.kind * 7919u + found.site * 613u + found.other_site * 131u + found.region;
  for (u32 i = 0; i < 1024; i++) {
    unsigned short& place = c->place[(key + i) & 1023u];
    if (!place) {
      if (c->events == kEvents) {
        c->dropped++;
        return;
      }
      c->event[c->events] = found;
      c->event[c->events].count = 1;
      place = static_cast<unsigned short>(++c->events);
      return;
    }
    Event& e = c->event[place - 1];
    if (e.kind == found.kind && e.site == found.site && e.other_site == found.other_site && e.region == found.region) {
      e.count++;
      return;
    }
  }
}

void check_report(Check* c, u32 kind, u32 site, u32 other, u32 thread, u32 other_thread) {
  Event e{};
  e.kind = kind;
  e.site = site;
  e.other_site = other;
  e.thread = thread;
  e.other_thread = other_thread;
  e.threadgroup = e.other_threadgroup = c->order;
  e.region = kNowhere;
  record(c, e);
}

// Whether a write that met another one changed anything.
static void settle(Check* c) {
  for (u32 n = 0; n < c->pending; n++) {
    Pending& p = c->met[n];
    const unsigned char* now = reinterpret_cast<const unsigned char*>(p.at);
    bool same = true;
    for (u32 i = 0; i < p.bytes; i++) same &= now[i] == (p.value >> (8 * i) & 255u);
    if (same) {
      p.event.kind = kSameValue;
      p.event.barrier_site = p.event.barrier_flags = 0;
    }
    record(c, p.event);
  }
  c->pending = 0;
}

static void postpone(Check* c, const Event& found, u64 at, u32 bytes) {
  if (c->pending == kPending) return record(c, found);
  Pending& p = c->met[c->pending++];
  p.event = found;
  p.at = at;
  p.bytes = bytes;
  p.value = 0;
  for (u32 i = 0; i < bytes; i++) p.value |= static_cast<u32>(reinterpret_cast<const unsigned char*>(at)[i]) << (8 * i);
}

void check_begin(Check* c) { c->deadline = c->nanoseconds ? nanoseconds() + c->nanoseconds : 0; }

void check_end(Check* c) { settle(c); }

void check_threadgroup(Check* c, u32 simdgroups, u32 poison) {
  settle(c);
  if (c->clock) c->order++;
  c->clock++;
  c->began[c->order] = c->began_now = c->clock;
  c->last_barrier = c->ordered[0] = c->ordered[1] = c->clock;
  for (u32 i = 0; i < simdgroups; i++) c->ordered_simdgroup[i][0] = c->ordered_simdgroup[i][1] = c->clock;
  c->fenced = c->acquiring = c->acquired = c->diverged = 0;
  for (u32 i = kBuffers; i < kRegions && c->region[i].kind; i++) {
    const Region& r = c->region[i];
    unsigned char* to = reinterpret_cast<unsigned char*>(r.begin);
    for (u64 k = 0; k < r.bytes; k++) to[k] = static_cast<unsigned char>(poison >> (8 * (k & 3)));
    for (u64 k = 0; k < r.bytes; k++) r.known[k] = 0;
  }
}

void check_barrier(Check* c, u32 simdgroup, u32 site, u32 flags) {
  settle(c);
  const u32 now = ++c->clock;
  c->barrier_site[now % kHistory] = site;
  c->barrier_flags[now % kHistory] = flags;
  c->barrier_of[now % kHistory] = simdgroup;
  u32* ordered = simdgroup == kWholeThreadgroup ? c->ordered : c->ordered_simdgroup[simdgroup];
  if (flags & 1u) ordered[0] = now;
  if (flags & 2u) ordered[1] = now;
}

static u32 order_of(const Check* c, u32 when) {
  u32 low = 0, high = c->order;
  while (low < high) {
    const u32 middle = (low + high + 1) / 2;
    if (c->began[middle] <= when)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

// The first barrier after `when` for both threads, which was passed and does not order this memory; 0: there is none.
static u32 barrier_after(const Check* c, u32 when, u32 thread, u32 other) {
  const u32 oldest = c->clock >= kHistory ? c->clock - kHistory + 1 : 1;
  for (u32 t = when + 1 > oldest ? when + 1 : oldest; t <= c->clock; t++) {
    const u32 of = c->barrier_of[t % kHistory];
    if (of == kWholeThreadgroup || (of == thread / kLanes && of == other / kLanes)) return t;
  }
  return 0;
}

static bool ordered(const Check* c, Access a, u32 space, u32 thread, u32* kind) {
  if (a.when < c->began_now) {
    *kind = kRaceBetweenThreadgroups;
    return c->acquired && c->released[order_of(c, a.when)] >= a.when;
  }
  const u32 other = thread_of(a);
  if (other == thread || a.when < c->ordered[space]) return true;
  *kind = kRace;
  if (other / kLanes == thread / kLanes) {
    if (a.when < c->ordered_simdgroup[thread / kLanes][space]) return true;
    *kind = kRaceInSimdgroup;
  }
  return false;
}

struct Now {
  u32 region, how, site, size, thread;
  u64 at;
};

// The part of a unit that an access touches, as a mask of bytes.
struct Part {
  u64 at;
  u32 bytes;
};

static void meet(Check* c, Access a, u32 other_how, const Now& now, Part part) {
  const Region& r = c->region[now.region];
  const u32 space = r.kind == kThreadgroupArray;
  if (!a.when || !(bytes_of(a) & part.bytes) || (space && a.when < c->began_now)) return;
  if ((now.how & kAtomic) && is_atomic(a)) return;
  Event e{};
  if (ordered(c, a, space, now.thread, &e.kind)) return;
  e.site = now.site;
  e.other_site = site_of(a);
  e.thread = now.thread;
  e.other_thread = thread_of(a);
  e.threadgroup = c->order;
  e.other_threadgroup = order_of(c, a.when);
  e.region = now.region;
  e.how = now.how;
  e.other_how = other_how | (is_atomic(a) ? kAtomic : 0u);
  e.size = now.size;
  e.offset = part.at - r.begin;
  if (e.kind != kRaceBetweenThreadgroups) {
    if (const u32 t = barrier_after(c, a.when, now.thread, e.other_thread)) {
      e.kind = kBarrierFlags;
      e.barrier_site = c->barrier_site[t % kHistory];
      e.barrier_flags = c->barrier_flags[t % kHistory];
    }
  }
  if (now.how == kWrite && other_how == kWrite)
    postpone(c, e, part.at, static_cast<u32>(__builtin_popcount(part.bytes)));
  else
    record(c, e);
}

static void found_at(Check* c, u32 kind, const Now& now, u64 offset) {
  Event e{};
  e.kind = kind;
  e.site = now.site;
  e.thread = now.thread;
  e.threadgroup = c->order;
  e.region = now.region;
  e.how = now.how;
  e.size = now.size;
  e.offset = offset;
  record(c, e);
}

static void remember_read(Cell& cell, Access now, u32 began) {
  Access* r = cell.read;
  const bool here = r[0].when >= began;
  if (here && thread_of(r[0]) == thread_of(now)) {
    r[0] = now;
  } else if (here && thread_of(r[0]) / kLanes == thread_of(now) / kLanes) {
    r[1] = r[0];
    r[0] = now;
  } else {
    r[2] = r[0];
    r[1] = Access{};
    r[0] = now;
  }
}

// The bytes of unit `i` that an access touches, as a mask.
static u32 touched(u64 i, u32 shift, u64 offset, u32 size) {
  const u32 unit = 1u << shift;
  const u64 begin = i << shift;
  const u32 from = offset > begin ? static_cast<u32>(offset - begin) : 0;
  const u32 to = offset + size < begin + unit ? static_cast<u32>(offset + size - begin) : unit;
  return ((1u << to) - 1u) & ~((1u << from) - 1u);
}

// Whether an access is certainly ordered after an earlier one of the same threadgroup.
static bool follows(const Check* c, Access a, u32 space, u32 thread) {
  return a.when >= c->began_now && (a.when < c->ordered[space] || thread_of(a) == thread);
}

// The most usual case: one unit, and nothing in it that would need a closer look. False: look closer.
static bool plain(Check* c, const Now& now) {
  const Region& r = c->region[now.region];
  const u64 offset = now.at - r.begin, i = offset >> r.unit_shift;
  if (now.size != 1u << r.unit_shift || i << r.unit_shift != offset || now.how > kWrite) return false;
  Cell& cell = r.cells[i];
  const u32 space = r.kind == kThreadgroupArray;
  if ((cell.write.when && !follows(c, cell.write, space, now.thread)) || cell.atomic.when) return false;
  const Access access = {c->clock, who(now.thread, now.how, (1u << now.size) - 1u, now.site)};
  if (now.how == kRead) {
    if (r.known)
      for (u32 k = 0; k < now.size; k++)
        if (!r.known[offset + k]) return false;
    remember_read(cell, access, c->began_now);
    return true;
  }
  for (int k = 0; k < 3; k++)
    if (cell.read[k].when && !follows(c, cell.read[k], space, now.thread)) return false;
  if (r.known)
    for (u32 k = 0; k < now.size; k++) r.known[offset + k] = 1;
  cell = Cell{};
  cell.write = access;
  return true;
}

static void shadow(Check* c, const Now& now) {
  if (plain(c, now)) return;
  const Region& r = c->region[now.region];
  const u64 offset = now.at - r.begin;
  if (r.known) {
    if (!(now.how & kWrite) || now.how & kUpdate) {
      for (u32 i = 0; i < now.size; i++)
        if (!r.known[offset + i]) {
          found_at(c, kUninitialised, now, offset + i);
          break;
        }
    }
    if (now.how & kWrite)
      for (u32 i = 0; i < now.size; i++) r.known[offset + i] = 1;
  }
  const u64 first = offset >> r.unit_shift, last = (offset + now.size - 1) >> r.unit_shift;
  const u32 whole = (1u << (1u << r.unit_shift)) - 1u;
  for (u64 i = first; i <= last; i++) {
    Cell& cell = r.cells[i];
    const u32 bytes = touched(i, r.unit_shift, offset, now.size);
    const Access access = {c->clock, who(now.thread, now.how, bytes, now.site)};
    const u64 begin = r.begin + (i << r.unit_shift);
    const Part part = {begin > now.at ? begin : now.at, bytes};
    if (cell.write.when) meet(c, cell.write, kWrite, now, part);
    if (cell.atomic.when && !(now.how & kAtomic)) meet(c, cell.atomic, kWrite, now, part);
    if (now.how & kWrite) {
      for (int k = 0; k < 3; k++)
        if (cell.read[k].when) meet(c, cell.read[k], kRead, now, part);
      // Who comes after this write comes after these reads, or races with it.
      if (bytes == whole) cell.read[0] = cell.read[1] = cell.read[2] = Access{};
      (now.how & kAtomic ? cell.atomic : cell.write) = access;
    } else {
      remember_read(cell, access, c->began_now);
    }
  }
}

// Memory that nobody owns: what is read from it is garbage, what is written to it is lost.
static void* nowhere(Check* c) {
  for (u32 i = 0; i < kScratch / 4; i++) c->scratch[i] = c->garbage;
  return c->scratch;
}

static void atomics(Check* c, Region& r, u32 how) {
  if (how & kWrite) r.atomics = 1;
  if ((how & kWrite) && c->fenced) c->released[c->order] = c->clock;
  c->acquiring = 1;
}

// Memory that is no array of the kernel's: the thread's own, the scheduler's, the program's constants.
static bool known_elsewhere(const Check* c, u64 at, u32 size) {
  if (at - c->stacks_begin < c->stacks_bytes || at - c->engine_begin < c->engine_bytes) return true;
  for (u32 i = 0; i < c->objects; i++)
    if (at - c->object[i].begin < c->object[i].bytes && size <= c->object[i].bytes - (at - c->object[i].begin))
      return true;
  return false;
}

static u32 region_of(const Check* c, u64 at) {
  const u64 buffer = (at - c->buffers_begin) >> c->buffer_shift, array = (at - c->arrays_begin) >> kArrayShift;
  if (buffer < kBuffers && c->region[buffer].kind) return static_cast<u32>(buffer);
  if (array < kArrays && c->region[kBuffers + array].kind) return static_cast<u32>(kBuffers + array);
  return kNowhere;
}

}  // namespace assay

using namespace assay;

extern "C" {

// The address to use for an access. `how_align`: kRead, kWrite, kAtomic in the low byte, above it the alignment needed.
void* assay_access(void* pointer, u32 size, u32 how_align, u32 site) {
  Check* c = checking;
  if (!size) return pointer;
  if (c->pending) settle(c);
  const u64 at = reinterpret_cast<u64>(pointer);
  const Now now = {region_of(c, at), how_align & 7u, site, size, thread_now(c), at};
  if (now.region == kNowhere) {
    if (known_elsewhere(c, at, size)) return pointer;
    found_at(c, kOutOfBounds, now, at);
    return size <= kScratch ? nowhere(c) : pointer;
  }
  Region& r = c->region[now.region];
  const u64 offset = at - r.begin, align = how_align >> 8;
  if (offset >= r.bytes || size > r.bytes - offset) {
    found_at(c, kOutOfBounds, now, offset);
    // The part inside is lost as well, but somebody did mean to write it.
    if (r.known && now.how & kWrite)
      for (u64 i = offset; i < r.bytes && i < offset + size; i++) r.known[i] = 1;
    return size <= kScratch ? nowhere(c) : pointer;
  }
  if (align > 1 && (at & (align - 1))) found_at(c, kMisaligned, now, offset);
  if (r.kind == kInput) {
    if (!(now.how & kWrite)) return pointer;
    found_at(c, kWriteToInput, now, offset);
    return size <= kScratch ? nowhere(c) : pointer;
  }
  if (now.how & kAtomic) atomics(c, r, now.how);
  shadow(c, now);
  return pointer;
}

// An access that is outside of a variable of `bytes`, or askew in it: the address to use.
void* assay_stray(void* pointer, u64 offset, u64 bytes, u32 size, u32 how_align, u32 site, u32 object) {
  Check* c = checking;
  const Now now = {kObjects + object, how_align & 7u, site, size, thread_now(c), 0};
  const bool inside = offset < bytes && size <= bytes - offset;
  found_at(c, inside ? kMisaligned : kOutOfBounds, now, offset);
  return inside || size > kScratch ? pointer : nowhere(c);
}

// A component that a vector does not have.
void assay_component(u64 offset, u32 size, u32 site, u32 object) {
  Check* c = checking;
  found_at(c, kOutOfBounds, Now{kObjects + object, kRead, site, size, thread_now(c), 0}, offset);
}

void assay_unknown(u64 offset, u32 size, u32 site, u32 object) {
  Check* c = checking;
  found_at(c, kUninitialised, Now{kObjects + object, kRead, site, size, thread_now(c), 0}, offset);
}

void assay_shift(u64 amount, u32 width, u32 site) {
  Check* c = checking;
  found_at(c, kShift, Now{kNowhere, kRead, site, width, thread_now(c), 0}, amount);
}

Check* assay_check() { return checking; }

// What the thread's own variables hold before they are written.
u32 assay_private_poison() { return checking->private_poison; }

// Once in many turns of every loop.
void assay_tick(u32 site) {
  Check* c = checking;
  if (!c->deadline || nanoseconds() < c->deadline) return;
  found_at(c, kHang, Now{kNowhere, kRead, site, 0, thread_now(c), 0}, 0);
  assay_abandon();
}

void assay_fence(u32 flags) {
  Check* c = checking;
  if (!(flags & 1u)) return;
  c->fenced = 1;
  if (c->acquiring) c->acquired = 1;
}

// A threadgroup array of the kernel, by its place among the declarations.
void* assay_array(u32 number) {
  return reinterpret_cast<void*>(checking->arrays_begin + ((2ul * number + 1) << (kArrayShift - 1)));
}

// Address space for `bytes`, without memory; null: there is none.
void* assay_check_reserve(u64 bytes) {
  void* p = mmap(nullptr, bytes, 0, kPrivate, -1, 0);
  return p == reinterpret_cast<void*>(-1l) ? nullptr : p;
}

// Memory of zeros at a reserved address, or (`writable` 0) address space again. 0: there is no memory.
u32 assay_check_commit(void* at, u64 bytes, u32 writable) {
  return mmap(at, bytes, writable ? 3 : 0, kPrivate | 0x10, -1, 0) == at;
}

// The size of what Python lays out by itself.
u32 assay_check_bytes() { return sizeof(Check); }

}  // extern "C"
