// Pages of memory, the time and locks held for an instant. Freestanding, so that no C library header is needed to compile it.
#pragma once

extern "C" {
void* mmap(void*, unsigned long, int, int, int, long);
int mprotect(void*, unsigned long, int);
int munmap(void*, unsigned long);
int clock_gettime(int, long*);
int sched_yield();
}

inline void assay_lock(volatile char* lock) {
  while (__atomic_test_and_set(lock, __ATOMIC_ACQUIRE)) sched_yield();
}
inline void assay_unlock(volatile char* lock) { __atomic_clear(lock, __ATOMIC_RELEASE); }

inline unsigned long assay_nanoseconds() {
#if defined(__APPLE__)
  constexpr int kMonotonic = 6;
#else
  constexpr int kMonotonic = 1;
#endif
  long now[2] = {0, 0};
  clock_gettime(kMonotonic, now);
  return static_cast<unsigned long>(now[0]) * 1000000000ul + static_cast<unsigned long>(now[1]);
}

#if defined(__APPLE__)
constexpr int kPrivateAnonymous = 0x1002;
#else
constexpr int kPrivateAnonymous = 0x22 | 0x4000;  // and MAP_NORESERVE: most of a stack is never touched
#endif

constexpr unsigned long kPageBytes = 16 * 1024;  // arm64 macOS; a multiple of every other page

inline void* assay_reserve(unsigned long bytes) {
  void* p = mmap(nullptr, bytes, 3, kPrivateAnonymous, -1, 0);
  return p == reinterpret_cast<void*>(-1l) ? nullptr : p;
}

inline void assay_release(void* memory, unsigned long bytes) {
  if (memory) munmap(memory, bytes);
}

inline void assay_protect(void* page, unsigned long bytes) { mprotect(page, bytes, 0); }
