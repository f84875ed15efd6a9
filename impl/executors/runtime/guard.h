// What the scheduler and the handler of a guarded launch's faults know of each other.
#pragma once

#include "launch.h"
#include "system.h"

namespace assay {

constexpr u64 kSignalStackBytes = 64 * 1024;

enum class Touch : u32 { kUnknown = 0, kRead = 1, kWrite = 2 };

// One launching thread's: the stack of its signal handler, and whether that is set.
struct Guard {
  void* stack;
  bool swapped;
};

}  // namespace assay

void assay_guard_begin(assay::Guard* guard);
void assay_guard_end(assay::Guard* guard);
void assay_guard_forked();

// In the handler: where the scheduler's way out may run, after the fault has been noted in the launch; 0: the fault is
// not that of a thread of a kernel.
assay::u64 assay_note_fault(assay::u64 stack_pointer, assay::u64 address, assay::Touch touch);
void assay_leave_after_fault();
