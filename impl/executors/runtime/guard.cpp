// Faults of a guarded launch end that launch alone: a signal handler, on a stack of its own, notes what was touched and
// lets the fiber go on at the scheduler's way out. Freestanding, so the C library's structures are written down here.
#include "guard.h"

#if defined(__linux__)

using namespace assay;

extern "C" {
int sigaction(int number, const void* action, void* before);
int sigaltstack(const void* stack, void* before);
}

namespace {

struct Action {
  void (*handler)(int, unsigned char*, unsigned char*);
  u64 mask[16];
  int flags;
  void* restorer;
};

struct SignalStack {
  void* base;
  int flags;
  u64 bytes;
};

constexpr int kBus = 7, kSegmentation = 11;
constexpr int kInformation = 4, kOnStack = 0x08000000, kDisabled = 2;
constexpr int kFaultAddress = 16;

#if defined(__x86_64__)
constexpr int kStackPointer = 160, kProgramCounter = 168, kErrorCode = 192;
#else
constexpr int kStackPointer = 432, kProgramCounter = 440;
#endif

u64& word(unsigned char* at) { return *reinterpret_cast<u64*>(at); }

Action before_us[2];
volatile char lock;

Action& before(int number) { return before_us[number == kBus]; }

void on_fault(int number, unsigned char* information, unsigned char* context) {
  Touch touch = Touch::kUnknown;
#if defined(__x86_64__)
  touch = word(context + kErrorCode) & 2 ? Touch::kWrite : Touch::kRead;
#endif
  const u64 stack = assay_note_fault(word(context + kStackPointer), word(information + kFaultAddress), touch);
  if (stack) {
    word(context + kStackPointer) = stack;
    word(context + kProgramCounter) = reinterpret_cast<u64>(assay_leave_after_fault);
    return;
  }
  // Not ours: the access happens again under whoever was there before.
  sigaction(number, &before(number), nullptr);
}

void install(int number) {
  Action now;
  sigaction(number, nullptr, &now);
  if (now.handler == on_fault) return;
  before(number) = now;
  Action ours = {on_fault, {}, kInformation | kOnStack, nullptr};
  sigaction(number, &ours, nullptr);
}

}  // namespace

void assay_guard_begin(Guard* guard) {
  if (!guard->stack) guard->stack = assay_reserve(kSignalStackBytes);
  SignalStack own = {guard->stack, 0, kSignalStackBytes}, found = {};
  sigaltstack(nullptr, &found);
  guard->swapped = (found.flags & kDisabled) && guard->stack;
  if (guard->swapped) sigaltstack(&own, nullptr);
  assay_lock(&lock);
  install(kSegmentation);
  install(kBus);
  assay_unlock(&lock);
}

void assay_guard_end(Guard* guard) {
  const SignalStack none = {nullptr, kDisabled, 0};
  if (guard->swapped) sigaltstack(&none, nullptr);
}

void assay_guard_forked() { assay_unlock(&lock); }

#else

void assay_guard_forked() {}
void assay_guard_begin(assay::Guard*) {}
void assay_guard_end(assay::Guard*) {}

#endif
