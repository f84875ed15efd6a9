// Barriers, threadgroup arrays, and the operations across the lanes of a simdgroup or a quad, as the machine has them.
#pragma once

#ifdef ASSAY_CUDA
#include "warp.h"
#else
#include "fibers.h"
#endif
