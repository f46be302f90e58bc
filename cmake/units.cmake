# How files become units of compilation, and how hard each is optimised.
#
# With FORETOKEN_UNITY (preset release, packages) the files of a target are compiled in units of up to 25 files, which takes a third
# of the time, as most of it goes into headers. Without it (preset dev) each file is a unit of its own. Both give the same bits. A name
# in an anonymous namespace is therefore unique within its module: it says what it is of.
option(FORETOKEN_UNITY "Compile many files together: quicker from scratch, slower after a change" OFF)

# g++ looks for memory that it can reuse less often: a tenth less time for a unit of many headers, and a quarter more memory.
if(FORETOKEN_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(--param=ggc-min-expand=300 --param=ggc-min-heapsize=524288)
endif()

# foretoken_units(TARGET): files with options of their own (settings/bundled_models.cpp) remain single.
function(foretoken_units target)
  if(NOT FORETOKEN_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 25)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # false alarms of g++ 12; the first one takes every file of a unit for a header
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage -Wno-maybe-uninitialized -Wno-array-bounds)
  endif()
endfunction()

# foretoken_optimized(TARGET LEVEL): where a build asks for -O3, this target gets -O1 or -O2 instead. For code that works once per
# start or request, where -O3 costs compile time and gains nothing that can be measured.
function(foretoken_optimized target level)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  if("${CMAKE_CXX_FLAGS_${build_type}}" MATCHES "-O3")
    target_compile_options(${target} PRIVATE ${level})
  endif()
endfunction()

# Headers of libraries that nearly every file reads, compiled once for each of two sets. Off in the presets of the sanitizers, which
# so show that each file includes what it uses.
option(FORETOKEN_PCH "Compile the headers of libraries once" OFF)
set(foretoken_headers_std
  <algorithm> <array> <atomic> <chrono> <condition_variable> <cstring> <filesystem> <fstream> <functional> <map> <memory> <mutex>
  <optional> <set> <span> <sstream> <string> <string_view> <thread> <tl/expected.hpp> <unordered_map> <utility> <variant> <vector>
  <fmt/format.h> <fmt/ranges.h>)
set(foretoken_headers_tests ${foretoken_headers_std} <gtest/gtest.h>)

# foretoken_precompiled(TARGET SET): std or tests. Programs are compiled as libraries are (-fPIC), as the kinds must agree.
function(foretoken_precompiled target set)
  if(NOT FORETOKEN_PCH)
    return()
  endif()
  if(NOT TARGET foretoken_headers_${set})
    set(source ${PROJECT_BINARY_DIR}/headers/${set}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "// Nothing but precompiled headers.\n")
    add_library(foretoken_headers_${set} OBJECT ${source})
    target_link_libraries(foretoken_headers_${set} PRIVATE foretoken_settings foretoken_strict)
    if(set STREQUAL "tests")
      target_link_libraries(foretoken_headers_${set} PRIVATE GTest::gtest)
    endif()
    target_precompile_headers(foretoken_headers_${set} PRIVATE ${foretoken_headers_${set}})
  endif()
  target_precompile_headers(${target} REUSE_FROM foretoken_headers_${set})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()

# foretoken_test_programs(FOLDER): gives all gtest programs at and below a folder their headers and units. Their own code runs once: -O1.
function(foretoken_test_programs folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE" AND target MATCHES "_tests$" AND NOT target MATCHES "^train")
      target_link_libraries(${target} PRIVATE foretoken_strict)
      target_compile_options(${target} PRIVATE -Wno-dangling-else -Wno-shadow -Wno-array-bounds)  # what gtest's macros write; a false alarm at -O1
      foretoken_precompiled(${target} tests)
      foretoken_units(${target})
      foretoken_optimized(${target} -O1)
    endif()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(inner IN LISTS folders)
    foretoken_test_programs(${inner})
  endforeach()
endfunction()
