// Every access of an instrumented kernel comes here first, with the place in the text where it stands.
#include "watch.h"

namespace assay {

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
  if (align > 1 && (at & (align - 1)))
    found_at(c, kMisaligned, Now{now.region, now.how, site, static_cast<u32>(align), now.thread, at}, offset);
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

}  // extern "C"
