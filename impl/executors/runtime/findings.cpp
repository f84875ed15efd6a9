// What was found: kept once for each kind and pair of places, and counted.
#include "watch.h"

namespace assay {

void record(Check* c, const Event& found) {
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
void settle(Check* c) {
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

void postpone(Check* c, const Event& found, u64 at, u32 bytes) {
  if (c->pending == kPending) return record(c, found);
  Pending& p = c->met[c->pending++];
  p.event = found;
  p.at = at;
  p.bytes = bytes;
  p.value = 0;
  for (u32 i = 0; i < bytes; i++) p.value |= static_cast<u32>(reinterpret_cast<const unsigned char*>(at)[i]) << (8 * i);
}

void found_at(Check* c, u32 kind, const Now& now, u64 offset) {
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

}  // namespace assay
