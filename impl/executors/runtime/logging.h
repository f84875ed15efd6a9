// Metal's log: a kernel may have one; what it says goes nowhere.
#pragma once

#include "types.h"

namespace metal {

struct os_log {
  constexpr os_log(const __constant char*, const __constant char*) __private {}
  constexpr os_log(const __constant char*, const __constant char*) __constant {}
#define ASSAY_LOG(name, space)                   \
  template <class... A>                          \
  void name(const __constant char*, A...) const space {}
#define ASSAY_LOGS(name) ASSAY_LOG(name, __private) ASSAY_LOG(name, __constant)
  ASSAY_LOGS(log)
  ASSAY_LOGS(log_debug)
  ASSAY_LOGS(log_info)
  ASSAY_LOGS(log_error)
  ASSAY_LOGS(log_fault)
#undef ASSAY_LOG
#undef ASSAY_LOGS
};

constexpr __constant os_log os_log_default("", "");

}  // namespace metal
