# The headers of Boost, which the toolchain file's flags find, and what those of Asio need on Windows.
add_library(Boost::headers INTERFACE IMPORTED)
if(WIN32)
  # Completion ports cannot say that a listener has a guest or that a socket has room; select, which Asio uses without them, can.
  target_compile_definitions(Boost::headers INTERFACE BOOST_ASIO_DISABLE_IOCP)
  target_link_libraries(Boost::headers INTERFACE ws2_32 mswsock)
endif()
set(Boost_FOUND TRUE)
