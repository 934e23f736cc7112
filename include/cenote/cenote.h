// All of cenote: differentiable window reductions at memory speed.
#pragma once

#include <cenote/array.h>
#include <cenote/autodiff.h>
#include <cenote/device.h>
#include <cenote/dual.h>
#include <cenote/error.h>
#include <cenote/extents.h>
#include <cenote/fold.h>
#include <cenote/fold_autodiff.h>
#include <cenote/graph.h>
#include <cenote/linearized.h>
#include <cenote/plan.h>
#include <cenote/pooling.h>
#include <cenote/problem.h>
#include <cenote/reducers.h>
#include <cenote/signature.h>
#include <cenote/sparse.h>
#include <cenote/static_graph.h>
#include <cenote/tensor.h>
#include <cenote/types.h>
#include <cenote/version.h>
#include <cenote/window.h>
