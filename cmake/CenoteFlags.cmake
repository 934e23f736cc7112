# Compiler flags for everything that is built here; nothing of this reaches a consumer.

# One rounding per written operation, so that results are the same on every SIMD target and at every block's edge.
add_compile_options(-ffp-contract=off)

if(CENOTE_WARNINGS)
  add_compile_options(-Wall -Wextra -Wconversion -Wnon-virtual-dtor)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC's full -Wshadow rejects constructor parameters named like the members they set; GCC 12's -Wrestrict sees overlaps
    # inside std::string that are not there.
    add_compile_options(-Wshadow=local -Wno-restrict)
  else()
    add_compile_options(-Wshadow)
  endif()
endif()
# Only of the compiler that the tests are run with: others warn of what nobody has seen here, which must not stop a build.
if(CENOTE_WERROR AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options(-Werror)
endif()

if(CENOTE_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  # For what is inlined deeply: checking each reference and each temporary there would take minutes to compile.
  set(CENOTE_FEWER_CHECKS -fno-sanitize=null,alignment,object-size,pointer-overflow,vptr
      -fno-sanitize-address-use-after-scope)
endif()
