# The only place where instruction set flags stand. They reach a file only through foretoken_isa_sources().
set(FORETOKEN_ISA_FLAGS_scalar "")
set(FORETOKEN_ISA_FLAGS_neon "-march=armv8.2-a+dotprod")
set(FORETOKEN_ISA_FLAGS_avx2 "-mavx2;-mfma;-mf16c;-mbmi2")
set(FORETOKEN_ISA_FLAGS_avxvnni "-mavxvnni;-mavx2;-mfma;-mf16c;-mbmi2")
set(FORETOKEN_ISA_FLAGS_avxvnni_evex "-mavx512vl;-mavx512vnni;-mavx2;-mfma;-mf16c;-mbmi2")  # for a test
set(FORETOKEN_ISA_FLAGS_avx512 "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-mfma;-mf16c;-mbmi2")
set(FORETOKEN_ISA_FLAGS_amx "-mamx-tile;-mamx-int8;-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-mfma;-mf16c;-mbmi2")

# g++ 12 takes the undefined operands in its own header of AVX-512 (_mm512_undefined) for mistakes of its callers.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND FORETOKEN_ISA_FLAGS_avx512 -Wno-maybe-uninitialized)
  list(APPEND FORETOKEN_ISA_FLAGS_amx -Wno-maybe-uninitialized)
endif()

function(foretoken_isa_sources isa)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${FORETOKEN_ISA_FLAGS_${isa}}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()
