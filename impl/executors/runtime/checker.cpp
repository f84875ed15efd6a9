// The checker of a launch: its begin and end, its clock, its memory, and what instrumented code asks of it beside accesses.
#include "system.h"
#include "watch.h"

namespace assay {

constinit thread_local Check* checking __attribute__((tls_model("initial-exec")));

void check_begin(Check* c) { c->deadline = c->nanoseconds ? assay_nanoseconds() + c->nanoseconds : 0; }

void check_end(Check* c) { settle(c); }

}  // namespace assay

using namespace assay;

extern "C" {

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
  if (!c->deadline || assay_nanoseconds() < c->deadline) return;
  found_at(c, kHang, Now{kNowhere, kRead, site, 0, thread_now(c), 0}, 0);
  assay_abandon();
}

// A threadgroup array of the kernel, by its place among the declarations.
void* assay_array(u32 number) {
  return reinterpret_cast<void*>(checking->arrays_begin + ((2ul * number + 1) << (kArrayShift - 1)));
}

// Address space for `bytes`, without memory; null: there is none.
void* assay_check_reserve(u64 bytes) {
  void* p = mmap(nullptr, bytes, 0, kPrivateAnonymous, -1, 0);
  return p == reinterpret_cast<void*>(-1l) ? nullptr : p;
}

// Memory of zeros at a reserved address, or (`writable` 0) address space again. 0: there is no memory.
u32 assay_check_commit(void* at, u64 bytes, u32 writable) {
  return mmap(at, bytes, writable ? 3 : 0, kPrivateAnonymous | 0x10, -1, 0) == at;
}

// The size of what Python lays out by itself.
u32 assay_check_bytes() { return sizeof(Check); }

}  // extern "C"
