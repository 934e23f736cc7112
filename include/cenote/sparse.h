// Sparse pooling: tensors, their coordinates, and the relations between them.
#pragma once

#include <cenote/coordinates.h>
#include <cenote/relation.h>
#include <cenote/sparse_tensor.h>
