// Metal's standard library, as far as kernels use it. Whatever of it a header includes, all of it is there.
#pragma once

#include "atomics.h"
#include "collectives.h"
#include "logging.h"
#include "matrices.h"
#include "packing.h"
#include "simdgroup_matrix.h"
#ifdef ASSAY_CHECKED
#include "shifts.h"
#endif

using namespace metal;
