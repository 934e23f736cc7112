// The types that indices have, as types.
#pragma once

#include <cstdint>

#include <cenote/types.h>

namespace cenote::cpu {

/// Calls visit with a number of the type.
template <class Visit>
void visit_index_type(Type type, const Visit& visit) {
  switch (type) {
    case Type::u8: return visit(std::uint8_t{});
    case Type::u16: return visit(std::uint16_t{});
    case Type::i32: return visit(std::int32_t{});
    default: return visit(std::int64_t{});
  }
}

}  // namespace cenote::cpu
