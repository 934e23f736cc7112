// Sparse pooling: tensors, their coordinates, the relations between them, and reductions over relations.
#pragma once

#include <cenote/coordinates.h>
#include <cenote/relation.h>
#include <cenote/row_pooling.h>
#include <cenote/sparse_pool.h>
#include <cenote/sparse_tensor.h>
