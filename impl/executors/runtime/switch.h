// The machine-dependent part of the scheduler: switching stacks and the floating-point mode.
#pragma once

#include "launch.h"

extern "C" {
// Saves the callee-saved registers on the running stack, its pointer in *save, and continues on `load`.
void assay_switch(void** save, void* load);
}

#if defined(__x86_64__)
// A stack from which assay_switch returns into `entry`, aligned as after a call.
inline void* assay_prepare(unsigned char* top, void (*entry)()) {
  unsigned long* sp = reinterpret_cast<unsigned long*>(reinterpret_cast<unsigned long>(top) & ~63ul);
  *--sp = 0;
  *--sp = reinterpret_cast<unsigned long>(entry);
  for (int i = 0; i < 6; i++) *--sp = 0;
  return sp;
}

// Rounds to nearest, traps nothing; `flush`: f32 results and operands that are denormal count as zero (f16 keeps them).
inline unsigned long assay_enter_mode(bool flush) {
  unsigned int before;
  asm volatile("stmxcsr %0" : "=m"(before));
  const unsigned int during = 0x1f80u | (flush ? 0x8040u : 0u);  // flush-to-zero, denormals-are-zero
  asm volatile("ldmxcsr %0" : : "m"(during));
  return before;
}

inline void assay_restore_mode(unsigned long mode) {
  const unsigned int before = static_cast<unsigned int>(mode);
  asm volatile("ldmxcsr %0" : : "m"(before));
}

#elif defined(__aarch64__)
inline void* assay_prepare(unsigned char* top, void (*entry)()) {
  unsigned long* sp = reinterpret_cast<unsigned long*>(reinterpret_cast<unsigned long>(top) & ~63ul);
  for (int i = 0; i < 20; i++) *--sp = 0;
  sp[11] = reinterpret_cast<unsigned long>(entry);  // x30
  return sp;
}

inline unsigned long assay_enter_mode(bool flush) {
  unsigned long before;
  asm volatile("mrs %0, fpcr" : "=r"(before));
  const unsigned long during = flush ? 1ul << 24 : 0ul;  // FZ for f32, not FZ16
  asm volatile("msr fpcr, %0" : : "r"(during));
  return before;
}

inline void assay_restore_mode(unsigned long mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
#error "the host executor knows x86_64 and arm64"
#endif
