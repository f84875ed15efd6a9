// The machine-dependent part of the scheduler: switching stacks and the floating-point mode.
#pragma once

#include "launch.h"

extern "C" {
// Saves the callee-saved registers on the running stack, its pointer in *save, and continues on `load`.
void assay_switch(void** save, void* load);
}

#if defined(__x86_64__)
#if defined(__APPLE__)
#define ASSAY_SYMBOL "_assay_switch"
#else
#define ASSAY_SYMBOL "assay_switch"
#endif
asm(".text\n.p2align 4\n.globl " ASSAY_SYMBOL "\n" ASSAY_SYMBOL
    ":\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp, (%rdi)\n"
    "movq %rsi, %rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\n"
    "retq\n");

// A stack from which assay_switch returns into `entry`, aligned as after a call.
static void* assay_prepare(unsigned char* top, void (*entry)()) {
  unsigned long* sp = reinterpret_cast<unsigned long*>(reinterpret_cast<unsigned long>(top) & ~63ul);
  *--sp = 0;
  *--sp = reinterpret_cast<unsigned long>(entry);
  for (int i = 0; i < 6; i++) *--sp = 0;
  return sp;
}

// Rounds to nearest, traps nothing; `flush`: f32 results and operands that are denormal count as zero (f16 keeps them).
static unsigned long assay_enter_mode(bool flush) {
  unsigned int before;
  asm volatile("stmxcsr %0" : "=m"(before));
  const unsigned int during = 0x1f80u | (flush ? 0x8040u : 0u);  // flush-to-zero, denormals-are-zero
  asm volatile("ldmxcsr %0" : : "m"(during));
  return before;
}

static void assay_restore_mode(unsigned long mode) {
  const unsigned int before = static_cast<unsigned int>(mode);
  asm volatile("ldmxcsr %0" : : "m"(before));
}

#elif defined(__aarch64__)
#if defined(__APPLE__)
#define ASSAY_SYMBOL "_assay_switch"
#else
#define ASSAY_SYMBOL "assay_switch"
#endif
asm(".text\n.p2align 4\n.globl " ASSAY_SYMBOL "\n" ASSAY_SYMBOL
    ":\n"
    "sub sp, sp, #160\n"
    "stp x19, x20, [sp, #0]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\nstp x25, x26, [sp, #48]\n"
    "stp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\n"
    "stp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]\n"
    "mov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
    "ldp x19, x20, [sp, #0]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\nldp x25, x26, [sp, #48]\n"
    "ldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\n"
    "ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\n"
    "add sp, sp, #160\n"
    "ret\n");

static void* assay_prepare(unsigned char* top, void (*entry)()) {
  unsigned long* sp = reinterpret_cast<unsigned long*>(reinterpret_cast<unsigned long>(top) & ~63ul);
  for (int i = 0; i < 20; i++) *--sp = 0;
  sp[11] = reinterpret_cast<unsigned long>(entry);  // x30
  return sp;
}

static unsigned long assay_enter_mode(bool flush) {
  unsigned long before;
  asm volatile("mrs %0, fpcr" : "=r"(before));
  const unsigned long during = flush ? 1ul << 24 : 0ul;  // FZ for f32, not FZ16
  asm volatile("msr fpcr, %0" : : "r"(during));
  return before;
}

static void assay_restore_mode(unsigned long mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
#error "the host executor knows x86_64 and arm64"
#endif
