// Nodes that callers define, as operations.
#pragma once

#include <cenote/graph.h>

#include "autodiff/op.h"

namespace cenote::autodiff {

OpPtr user_op(const graph::UserNode& node);

}  // namespace cenote::autodiff
