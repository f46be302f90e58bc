# foretoken_module(NAME SOURCES ... DEPS ... [LIBS ...] [TESTS ...] [GROWTH_TESTS ...] [TEST_LIBS ...])
# Makes the static library foretoken_NAME, its warnings, one gtest program NAME_tests, and the input of the layer test
# (tools/check_layers.py reads DEPS from these calls). GROWTH_TESTS count instructions (base/growth_testing.h): their program
# NAME_growth_tests runs under valgrind. LIBS are third-party CMake targets, private to the module's .cpp files
# unless listed under PUBLIC_LIBS. Files are listed by hand, except for those of folders that hold one file for each row of a
# registry: foretoken_files() finds them.
add_library(foretoken_settings INTERFACE)
target_include_directories(foretoken_settings INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
target_link_libraries(foretoken_settings INTERFACE Threads::Threads fmt::fmt tl::expected)
target_compile_features(foretoken_settings INTERFACE cxx_std_20)
# How this project's own files are compiled; users of the library do not inherit it.
add_library(foretoken_strict INTERFACE)
target_compile_options(foretoken_strict INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wno-sign-conversion -Wno-missing-field-initializers -Wno-unknown-pragmas -ffp-contract=off -fno-math-errno)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # false alarms of g++ 12 inside its own string and vector at -O3
  target_compile_options(foretoken_strict INTERFACE -Wno-restrict -Wno-stringop-overflow)
  # g++ 12.2 hoists loads out of the branches of an `if` with the type of one of them. In a Result it so reads where the text of an
  # error lies as the pointer of a vector, moves that read above the call that moves the text away, and frees the text twice.
  target_compile_options(foretoken_strict INTERFACE -fno-code-hoisting)
endif()

# Tests of other processes, control groups, and files that change while they are mapped, in calls that Windows lacks.
set(FORETOKEN_POSIX_TESTS "(^|/)(seeded_hash|file|mapped_file|cpus|memory_limit|tile_cache|tile_folder)_test\\.cpp$")

function(foretoken_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;LIBS;PUBLIC_LIBS;TESTS;GROWTH_TESTS;TEST_LIBS" ${ARGN})
  if(WIN32)
    list(FILTER arg_TESTS EXCLUDE REGEX "${FORETOKEN_POSIX_TESTS}")
  endif()
  add_library(foretoken_${name} STATIC ${arg_SOURCES})
  target_link_libraries(foretoken_${name} PUBLIC foretoken_settings ${arg_PUBLIC_LIBS} PRIVATE $<BUILD_INTERFACE:foretoken_strict> ${arg_LIBS})
  foretoken_units(foretoken_${name})
  foretoken_precompiled(foretoken_${name} std)
  foreach(dep IN LISTS arg_DEPS)
    target_link_libraries(foretoken_${name} PUBLIC foretoken_${dep})
  endforeach()
  if(FORETOKEN_TESTS AND arg_TESTS)
    add_executable(${name}_tests ${arg_TESTS})
    target_link_libraries(${name}_tests PRIVATE foretoken_${name} foretoken_strict ${arg_TEST_LIBS} ${arg_LIBS} GTest::gtest GTest::gtest_main)
    gtest_discover_tests(${name}_tests PROPERTIES LABELS unit DISCOVERY_TIMEOUT 60)
  endif()
  if(FORETOKEN_TESTS AND arg_GROWTH_TESTS)
    add_executable(${name}_growth_tests ${arg_GROWTH_TESTS})
    target_link_libraries(${name}_growth_tests PRIVATE foretoken_${name} foretoken_strict ${arg_TEST_LIBS} ${arg_LIBS} GTest::gtest GTest::gtest_main)
    foretoken_growth_test(${name}_growth_tests)
  endif()
endfunction()

# foretoken_growth_test(PROGRAM): one test of ctest that runs the program under callgrind; skipped without valgrind, and in builds
# that it cannot run.
find_program(FORETOKEN_VALGRIND valgrind)
function(foretoken_growth_test program)
  set(counter)
  if(FORETOKEN_VALGRIND AND NOT CMAKE_CROSSCOMPILING AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    set(counts ${CMAKE_CURRENT_BINARY_DIR}/${program}.counts)
    # One instruction of x86 may move any number of bytes; without it, long copies take as many instructions for each byte as short ones.
    set(copies glibc.cpu.x86_rep_movsb_threshold=0x40000000:glibc.cpu.x86_rep_stosb_threshold=0x40000000)
    set(counter ${CMAKE_COMMAND} -E env GROWTH_COUNTS=${counts} GLIBC_TUNABLES=${copies}
        ${FORETOKEN_VALGRIND} -q --vgdb=no --tool=callgrind --collect-atstart=no --callgrind-out-file=/dev/null --log-file=${counts})
  endif()
  add_test(NAME ${program} COMMAND ${counter} $<TARGET_FILE:${program}>)
  set_tests_properties(${program} PROPERTIES LABELS growth COST 30 SKIP_REGULAR_EXPRESSION "growth tests count instructions under callgrind")
endfunction()

# foretoken_files(SOURCES TESTS FOLDER ...): the .cpp files of folders of the module, and their tests (x_test.cpp), into two variables.
function(foretoken_files sources tests)
  set(found)
  foreach(folder IN LISTS ARGN)
    file(GLOB files CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${folder}/*.cpp)
    list(APPEND found ${files})
  endforeach()
  set(found_tests ${found})
  list(FILTER found EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER found_tests INCLUDE REGEX "_test\\.cpp$")
  set(${sources} ${found} PARENT_SCOPE)
  set(${tests} ${found_tests} PARENT_SCOPE)
endfunction()
