// The SIMD target in use, and the table of kernels that goes with it.
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <cstdlib>
#include <string>

#include <cenote/device.h>

#include "core/reject.h"
#include "cpu/kernels.h"
#include "reduce/traits.h"

namespace cenote {
namespace {

std::int64_t usable_targets() {
  static const std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return targets;
}

std::string all_names() {
  std::string names;
  for (const std::string& name : simd_targets()) names += (names.empty() ? "" : ", ") + name;
  return names;
}

void use_targets(std::int64_t mask) {
  hwy::SetSupportedTargetsForTest(mask);
  hwy::GetChosenTarget().Update(mask);
}

// An unknown name in the environment is ignored: a library must not fail while it is being loaded.
bool apply_environment() {
  const char* name = std::getenv("CENOTE_SIMD");
  for (const std::string& known : simd_targets())
    if (name && known == name) set_simd_target(known);
  return true;
}

}  // namespace

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  // A better target has a lower bit.
  for (std::int64_t bits = usable_targets(); bits != 0; bits &= bits - 1)
    names.emplace_back(hwy::TargetName(bits & -bits));
  return names;
}

std::string simd_target() {
  cpu::kernels(Type::f32, Reducer::max, Role::value);
  const std::int64_t bits = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(bits & -bits);
}

void set_simd_target(std::string_view name) {
  const std::int64_t usable = usable_targets();
  if (name.empty()) return use_targets(usable);
  for (std::int64_t bits = usable; bits != 0; bits &= bits - 1)
    if (name == hwy::TargetName(bits & -bits)) return use_targets(bits & -bits);
  reject("set_simd_target", "'", name, "': this machine and build have ", all_names());
}

namespace cpu {

namespace {

const Table& table(Type storage) noexcept {
  switch (storage) {
    case Type::f16: return kernels_f16();
    case Type::bf16: return kernels_bf16();
    case Type::f32: return kernels_f32();
    case Type::f64: return kernels_f64();
    case Type::i8: return kernels_i8();
    case Type::i16: return kernels_i16();
    case Type::i32: return kernels_i32();
    case Type::i64: return kernels_i64();
    case Type::u8: return kernels_u8();
    case Type::u16: return kernels_u16();
    case Type::u32: return kernels_u32();
    case Type::u64: return kernels_u64();
    case Type::boolean: break;
  }
  return kernels_u8();
}

}  // namespace

Kernels kernels(Type storage, Reducer reducer, Role role) noexcept {
  static const bool applied = apply_environment();
  static_cast<void>(applied);
  if (role == Role::value || role == Role::winner) return table(storage).at(role, reducer);
  Kernels result;
  if (storage == Type::f32) result = derivatives_f32().at(role, reducer);
  if (storage == Type::f64) result = derivatives_f64().at(role, reducer);
  // The states of a reducer that weighs are folded as its values are.
  if (role == Role::states && traits(reducer).weighs) {
    const auto finish = result.finish;
    result = table(storage).at(Role::value, reducer);
    result.finish = finish;
  }
  return result;
}

}  // namespace cpu
}  // namespace cenote
