// Checks of sparse kernels and of what a policy asks for.
#include "sparse/kernel.h"

#include "core/checked.h"
#include "core/reject.h"

namespace cenote::sparse {
namespace {

std::int64_t entry(std::string_view who, std::string_view field, const PerAxis& values, int dimension, int i,
                   std::int64_t least, std::string_view rule) {
  const Extents& given = values.values();
  if (!values.is_scalar() && given.size() != dimension)
    reject(who, "kernel.", field, " = ", given, ": must be one integer or one per lattice axis, ", dimension);
  const std::int64_t value = given[values.is_scalar() ? 0 : i];
  if (value >= least) return value;
  if (values.is_scalar())
    reject(who, "kernel.", field, " = ", value, ": every kernel ", rule, " must be at least ", least);
  reject(who, "kernel.", field, "[", i, "] = ", value, ": every kernel ", rule, " must be at least ", least);
}

// Section 1 of the semantics: what a dense pooling of that extent has.
void limit_outputs(std::string_view who, Shape& shape, const Extents& extent) {
  if (extent.size() != shape.columns - 1)
    reject(who, "extent ", extent, ": must have one number per lattice axis, ", shape.columns - 1);
  shape.limited = true;
  for (int a = 1; a < shape.columns; ++a) {
    const std::int64_t n = extent[a - 1];
    if (n < 0) reject(who, "extent[", a - 1, "] = ", n, ": must be at least 0");
    const Tap& tap = shape[a];
    const Checked room = Checked(n) + Checked(tap.padding) + Checked(tap.padding) - Checked(tap.reach()) - 1;
    if (!room.ok()) reject(who, "extent[", a - 1, "] = ", n, ": the padded extent must fit 64 bits");
    if (room.value() < 0)
      reject(who, "extent[", a - 1, "] = ", n, ": with padding ", tap.padding, " it must be at least ", tap.reach() + 1,
             ", the reach of the kernel");
    shape.limit[Range::at(a)] = room.value() / tap.stride + 1;
  }
}

}  // namespace

std::string_view name(Policy policy) noexcept {
  switch (policy) {
    case Policy::lattice: return "lattice";
    case Policy::dense: return "dense";
    case Policy::minkowski: break;
  }
  return "minkowski";
}

Divisors Shape::divisors() const noexcept {
  Divisors result{};
  for (std::size_t a = 1; a < Range::at(columns); ++a) result[a] = FloorDivide(axis[a].stride);
  return result;
}

Divisors Shape::cells() const noexcept {
  Divisors result{};
  for (std::size_t a = 1; a < Range::at(columns); ++a) result[a] = FloorDivide(axis[a].stride, axis[a].padding);
  return result;
}

bool Shape::apart() const noexcept {
  for (int a = 1; a < columns; ++a)
    if ((*this)[a].reach() >= (*this)[a].stride) return false;
  return true;
}

bool Shape::unit_stride() const noexcept {
  for (int a = 1; a < columns; ++a)
    if ((*this)[a].stride != 1) return false;
  return true;
}

bool Shape::groups() const noexcept {
  for (int a = 1; a < columns; ++a) {
    const Tap& tap = (*this)[a];
    if (tap.first != 0 || tap.padding != 0) return false;
  }
  return apart();
}

bool Shape::covers() const noexcept {
  for (int a = 1; a < columns; ++a)
    if ((*this)[a].size != (*this)[a].stride) return false;
  return !limited;
}

int Shape::power_of_two() const noexcept {
  const std::int64_t side = axis[1].size;
  for (int a = 1; a < columns; ++a)
    if ((*this)[a].size != side || (*this)[a].stride != side) return 0;
  const FloorDivide divide(side);
  return divide.shift > 0 ? divide.shift : 0;
}

Shape check_kernel(std::string_view who, const Kernel& kernel, int dimension) {
  Shape shape;
  shape.columns = dimension + 1;
  Checked volume = 1;
  for (int i = 0; i < dimension; ++i) {
    Tap& tap = shape.axis[Range::at(i + 1)];
    tap.size = entry(who, "size", kernel.size, dimension, i, 1, "extent");
    tap.stride = entry(who, "stride", kernel.stride, dimension, i, 1, "stride");
    tap.padding = entry(who, "padding", kernel.padding, dimension, i, 0, "padding");
    tap.dilation = entry(who, "dilation", kernel.dilation, dimension, i, 1, "dilation");
    tap.first = tap.size % 2 == 1 ? -(tap.size / 2) : 0;
    if (!(Checked(tap.size) * Checked(tap.dilation)).ok())
      reject(who, "kernel.size[", i, "] = ", tap.size, " with dilation ", tap.dilation,
             ": the reach of the kernel must fit 64 bits");
    volume = volume * Checked(tap.size);
  }
  if (!volume.ok() || volume.value() > INT32_MAX)
    reject(who, "kernel.size = ", kernel_of(shape).size.values(), ": the volume of the kernel must be below 2^31");
  shape.volume = volume.value();
  return shape;
}

void apply_policy(std::string_view who, Shape& shape, const RelateOptions& options) {
  if (options.extent && options.policy != Policy::dense)
    reject(who, "extent with policy ", name(options.policy), ": only policy dense has an extent");
  if (options.targets && options.order) reject(who, "order with targets: the rows are the targets in their own order");
  if (options.targets && options.targets->dimension() != shape.columns - 1)
    reject(who, "targets of dimension ", options.targets->dimension(), ": must be that of the coordinates, ",
           shape.columns - 1);
  bool tiles = true;
  for (int a = 1; a < shape.columns; ++a) {
    tiles = tiles && shape[a].size == shape[a].stride;
    if (options.policy == Policy::minkowski && shape[a].padding != 0)
      reject(who, "kernel.padding[", a - 1, "] = ", shape[a].padding,
             ": policy minkowski has no padding, it must be 0");
  }
  if (options.policy == Policy::dense || (options.policy == Policy::minkowski && tiles))
    for (Tap& tap : shape.axis) tap.first = 0;
  if (options.extent) limit_outputs(who, shape, *options.extent);
}

Kernel kernel_of(const Shape& shape) {
  Extents size, stride, padding, dilation;
  for (int a = 1; a < shape.columns; ++a) {
    size.push_back(shape[a].size);
    stride.push_back(shape[a].stride);
    padding.push_back(shape[a].padding);
    dilation.push_back(shape[a].dilation);
  }
  return {size, stride, padding, dilation};
}

std::string relation_key(const Shape& shape, const RelateOptions& options, Order order) {
  const Kernel kernel = kernel_of(shape);
  std::string text(name(options.policy));
  text += " k" + cenote::to_string(kernel.size.values()) + " s" + cenote::to_string(kernel.stride.values());
  text += " p" + cenote::to_string(kernel.padding.values()) + " d" + cenote::to_string(kernel.dilation.values());
  if (options.extent) text += " extent" + cenote::to_string(*options.extent);
  text += order == Order::sorted ? " sorted" : " first_seen";
  if (options.engine != Engine::automatic) text += options.engine == Engine::sorted ? " by sorting" : " by hashing";
  return text;
}

}  // namespace cenote::sparse
