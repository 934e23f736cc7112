// The reducers over plain scalars, on the host and in CUDA.
#pragma once

#include "reduce/numbers.h"
#include "reduce/params.h"

#define CENOTE_REGION_BEGIN namespace cenote::scalar {
#define CENOTE_REGION_END }
#define CENOTE_FN CENOTE_SCALAR_FN
#define CENOTE_LONG_FN CENOTE_SCALAR_FN
#include "reduce/reducers-inl.h"
#undef CENOTE_REGION_BEGIN
#undef CENOTE_REGION_END
#undef CENOTE_FN
#undef CENOTE_LONG_FN
