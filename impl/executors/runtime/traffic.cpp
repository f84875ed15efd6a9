// What a request of a simdgroup costs memory: sectors and lines of arrays, cycles of threadgroup memory's banks.
#include "counter.h"

namespace assay {

constexpr u64 kSector = 32, kLine = 128, kBank = 4, kBanks = 32;

static void mark(u64* bits, u64 offset, u64 bytes) {
  while (bytes) {
    const u64 within = offset & 63, n = bytes < 64 - within ? bytes : 64 - within;
    bits[offset >> 6] |= (n == 64 ? ~0ul : (1ul << n) - 1) << within;
    offset += n;
    bytes -= n;
  }
}

// A request as stretches of bytes from the begin of what it touches, by ascending address. Neighbours that follow one
// another without a gap, and lanes that ask for one and the same, are one stretch.
struct Stretches {
  u64 from[kLanes], bytes[kLanes];
  u32 count;
};

static void sorted(Stretches& s, const Group& g, u64 begin) {
  s.count = 0;
  for (u32 w = g.mask; w; w &= w - 1) {
    const u64 at = g.at[__builtin_ctz(w)] - begin;
    if (s.count) {
      const u64 from = s.from[s.count - 1], bytes = s.bytes[s.count - 1];
      if (at == from + bytes) {
        s.bytes[s.count - 1] += g.size;
        continue;
      }
      if (at >= from && at + g.size <= from + bytes) continue;
    }
    u32 i = s.count++;
    for (; i && s.from[i - 1] > at; i--) s.from[i] = s.from[i - 1], s.bytes[i] = s.bytes[i - 1];
    s.from[i] = at, s.bytes[i] = g.size;
  }
}

// Blocks of 1 << shift bytes that the stretches touch, each once.
static u64 blocks_of(const Stretches& s, u32 shift) {
  u64 next = 0, found = 0;
  for (u32 i = 0; i < s.count; i++) {
    const u64 first = s.from[i] >> shift, last = (s.from[i] + s.bytes[i] - 1) >> shift;
    const u64 begin = first > next ? first : next;
    if (last + 1 > begin) found += last + 1 - begin;
    if (last + 1 > next) next = last + 1;
  }
  return found;
}

// The cycles of one turn of the banks: the most words of one bank, each once however many lanes ask for it.
static u64 turn(const u64* word, u32 words) {
  unsigned char of_bank[kBanks] = {}, last[kBanks] = {}, before[kLanes * 2];
  u64 most = 0;
  for (u32 i = 0; i < words; i++) {
    const u64 bank = word[i] % kBanks;
    u32 k = last[bank];
    while (k && word[k - 1] != word[i]) k = before[k - 1];
    if (k) continue;
    before[i] = last[bank];
    last[bank] = static_cast<unsigned char>(i + 1);
    const u64 n = ++of_bank[bank];
    most = n > most ? n : most;
  }
  return most;
}

// Lanes are served by as many at a time as would fill the banks once: all of 4 bytes or less, half of 8, a quarter of 16.
static void serve(Tally& t, const Group& g, u64 arena) {
  const u32 words = g.size <= kBank ? 1 : static_cast<u32>((g.size + kBank - 1) / kBank);
  const u32 at_once = words >= kLanes ? 1 : kLanes / words;
  for (u32 first = 0; first < kLanes; first += at_once) {
    u64 word[kLanes * 2];
    u32 n = 0;
    for (u32 lane = first; lane < first + at_once && lane < kLanes; lane++) {
      if (!(g.mask >> lane & 1u)) continue;
      const u64 at = g.at[lane] - arena, last = (at + (g.size ? g.size : 1) - 1) / kBank;
      for (u64 w = at / kBank; w <= last && n < kLanes * 2; w++) word[n++] = w;
    }
    if (!n) continue;
    const u64 cycles = turn(word, n);
    t.cycles += cycles;
    t.conflicts += cycles - 1;
  }
}

static u64 most_at_one(const Group& g) {
  u64 most = 0;
  for (u32 w = g.mask; w; w &= w - 1) {
    u64 here = 0;
    for (u32 v = g.mask; v; v &= v - 1) here += g.at[__builtin_ctz(v)] == g.at[__builtin_ctz(w)];
    most = here > most ? here : most;
  }
  return most;
}

static const Extent* extent_of(Counter* c, u64 at) {
  const Extent& known = c->extent[c->last_extent];
  if (c->extents && at - known.begin < known.bytes) return &known;
  for (u32 i = 0; i < c->extents; i++)
    if (at - c->extent[i].begin < c->extent[i].bytes) {
      c->last_extent = i;
      return &c->extent[i];
    }
  return nullptr;
}

void settle_group(Counter* c, const Group& g) {
  const u64 at = g.at[__builtin_ctz(g.mask)];
  const bool shared = at - c->arena_begin < kMaxThreadgroupBytes;
  const Extent* extent = shared ? nullptr : extent_of(c, at);
  const bool own = !shared && !extent && at - c->stacks_begin < c->stacks_bytes;
  const u32 space = shared ? kThreadgroup : extent ? extent->space : own ? kPrivate : kElsewhere;
  const Site& site = c->site[g.site];
  Tally& t = c->tally[g.site * kSpaces + space];
  const u32 lanes = static_cast<u32>(__builtin_popcount(g.mask));
  t.requests++;
  t.lanes += lanes;
  t.bytes += static_cast<u64>(lanes) * g.size;
  if (own) return;
  Stretches s;
  sorted(s, g, shared ? c->arena_begin : extent ? extent->begin : 0);
  t.useful += blocks_of(s, 0);
  if (site.atomic) t.serial += most_at_one(g);
  if (shared) return serve(t, g, c->arena_begin);
  t.sectors += blocks_of(s, 5);
  t.lines += blocks_of(s, 7);
  if (!extent) return;
  u64* bits[2] = {site.writes != 1 ? extent->read : nullptr, site.writes ? extent->written : nullptr};
  for (u64* marks : bits)
    for (u32 i = 0; marks && i < s.count; i++)
      if (const u64 left = extent->bytes - s.from[i]; s.from[i] < extent->bytes)
        mark(marks, s.from[i], s.bytes[i] < left ? s.bytes[i] : left);
}

}  // namespace assay
