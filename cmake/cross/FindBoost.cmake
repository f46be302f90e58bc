# The headers of Boost, which the toolchain file's flags find, and what those of Asio need on Windows.
add_library(Boost::headers INTERFACE IMPORTED)
if(WIN32)
  target_link_libraries(Boost::headers INTERFACE ws2_32 mswsock)
endif()
set(Boost_FOUND TRUE)
