# Included by the project of the examples, for install_test.py: its programs share their precompiled headers.
function(share_headers)
  get_property(programs DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
  list(POP_FRONT programs first)
  target_precompile_headers(${first} PRIVATE <algorithm> <chrono> <functional> <map> <memory> <string> <vector>
    <foretoken/engine.h> <foretoken/async_engine.h> <foretoken/speculative_decoder.h> <foretoken/verification.h>)
  foreach(program IN LISTS programs)
    target_precompile_headers(${program} REUSE_FROM ${first})
  endforeach()
endfunction()
cmake_language(DEFER CALL share_headers)
