# CLI11 is headers alone, which the toolchain file's flags find.
add_library(CLI11::CLI11 INTERFACE IMPORTED)
