# tl::expected has nothing but a header, which the toolchain file's flags find. Its own package would put /usr/include first.
add_library(tl::expected INTERFACE IMPORTED)
