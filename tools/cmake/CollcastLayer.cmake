# One CMake target per layer. A layer links only what docs/design.md allows; tools/check-layers holds the
# includes to the same table.

# collcast_layer(NAME SOURCES a.cpp ... [UNIT_1 c.cpp ... UNIT_2 ...] [APART b.cpp ...] USES base ... [PRIVATE_LIBRARIES fmt::fmt ...])
#
# All presets but `dev` compile several files as one (CMAKE_UNITY_BUILD), which takes a third of the time: twenty at a
# time in their order, or, in a layer whose files have many local names in common, those of UNIT_1, of UNIT_2 ... A file
# in which a local name stands for something else than in its neighbours goes to another unit, or on its own: APART.
function(collcast_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;UNIT_1;UNIT_2;UNIT_3;UNIT_4;UNIT_5;APART;USES;PRIVATE_LIBRARIES" ${ARGN})
  add_library(collcast_${name} STATIC ${ARG_SOURCES} ${ARG_APART})
  set_source_files_properties(${ARG_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  collcast_units(collcast_${name} ${ARGN})
  add_library(collcast::${name} ALIAS collcast_${name})
  set_target_properties(collcast_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_include_directories(collcast_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_include_directories(collcast_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  foreach(used ${ARG_USES})
    target_link_libraries(collcast_${name} PUBLIC collcast_${used})
  endforeach()
  target_link_libraries(collcast_${name} PRIVATE ${ARG_PRIVATE_LIBRARIES})
  collcast_warnings(collcast_${name})
  install(TARGETS collcast_${name} EXPORT collcast ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# collcast_units(TARGET [UNIT_1 files ...] [UNIT_2 ...]): adds the files of each unit, compiled as one where several are.
function(collcast_units target)
  set(units UNIT_1 UNIT_2 UNIT_3 UNIT_4 UNIT_5)
  cmake_parse_arguments(ARG "" "" "SOURCES;${units};APART;USES;PRIVATE_LIBRARIES" ${ARGN})
  foreach(unit ${units})
    if(ARG_${unit})
      target_sources(${target} PRIVATE ${ARG_${unit}})
      set_source_files_properties(${ARG_${unit}} PROPERTIES UNITY_GROUP ${unit})
      set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
    endif()
  endforeach()
endfunction()

# The same flags for everything of ours. -ffp-contract=off: the same doubles on every compiler.
# GCC 12 sees uninitialised or overlapping strings in moved std::string aggregates where there are none
# (gcc.gnu.org PR105329, PR105562); Clang and the sanitizers watch for the real ones. Files compiled as one shadow each
# other's local names, and GCC takes what is local to them for parts of a header, which says nothing about either.
function(collcast_warnings target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wpedantic -ffp-contract=off
    $<$<NOT:$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wshadow>
    $<$<AND:$<BOOL:${CMAKE_UNITY_BUILD}>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
    $<$<BOOL:${COLLCAST_WERROR}>:-Werror>)
endfunction()

# collcast_test(NAME [LIGHT] [COST seconds] SOURCES ... [APART ...] USES layers ... [LIBRARIES ...] [LABELS ...])
# COST: about how long it takes; the longest begin first, so that no core is without work at the end.
# LIGHT: what takes time is in the programs that it starts, so that its own sources are compiled with
# COLLCAST_LIGHT_TEST_FLAGS: -O0 in the preset `test`, two thirds of the time. The preset `dev` (tools/test --long) has
# GCC's warnings that need optimisation of these, too.
set(COLLCAST_LIGHT_TEST_FLAGS "" CACHE STRING "Further flags of tests that compute little themselves")
function(collcast_test name)
  cmake_parse_arguments(ARG "LIGHT" "COST" "SOURCES;APART;USES;LIBRARIES;LABELS" ${ARGN})
  add_executable(test_${name} ${ARG_SOURCES} ${ARG_APART})
  set_source_files_properties(${ARG_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(test_${name} PRIVATE collcast_test_main ${ARG_LIBRARIES})
  foreach(used ${ARG_USES})
    target_link_libraries(test_${name} PRIVATE collcast_${used})
  endforeach()
  target_compile_definitions(test_${name} PRIVATE COLLCAST_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  collcast_warnings(test_${name})
  if(ARG_LIGHT)
    target_compile_options(test_${name} PRIVATE ${COLLCAST_LIGHT_TEST_FLAGS})
  endif()
  add_test(NAME ${name} COMMAND test_${name} --durations no)
  # Whatever hangs; sanitizers make a slow machine slower still.
  set(timeout 600)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
    set(timeout 1200)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "unit;${ARG_LABELS}" TIMEOUT ${timeout})
  if(ARG_COST)
    set_tests_properties(${name} PROPERTIES COST ${ARG_COST})
  endif()
endfunction()
