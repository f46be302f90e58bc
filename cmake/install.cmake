# What `cmake --install` puts where: the programs, the bundled models, test vectors, the kit that runs them, and the schema of settings files, and the library: headers, static archives, a CMake package
# (find_package(foretoken), target foretoken::foretoken) and foretoken.pc; and the C interface: foretoken.h, libforetoken.so.1, the target
# foretoken::shared and foretoken-c.pc. Everything may be moved to another prefix afterwards.
# foretoken-train is a program only: libtorch never reaches what the library's users link.
include(CMakePackageConfigHelpers)

# A release is installed without symbols: programs and shared libraries as `cmake --install --strip` does, and archives, which CMake leaves
# alone, without what debuggers read (below).
option(FORETOKEN_KEEP_SYMBOLS "Install a release with its symbols" OFF)
if(NOT FORETOKEN_KEEP_SYMBOLS)
  install(CODE [[
    if(CMAKE_INSTALL_CONFIG_NAME MATCHES "^(Release|MinSizeRel)$")
      set(CMAKE_INSTALL_DO_STRIP ON)
    endif()]] ALL_COMPONENTS)
endif()

if(TARGET foretoken_cli)
  install(TARGETS foretoken_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(DIRECTORY models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/foretoken/models OPTIONAL FILES_MATCHING PATTERN "*.gguf" PATTERN "*.md")
  if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)  # what the program prints of itself
    set(documents ${PROJECT_BINARY_DIR}/documents)
    install(DIRECTORY ${documents}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(DIRECTORY ${documents}/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(DIRECTORY ${documents}/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(DIRECTORY ${documents}/fish/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  endif()
endif()
if(TARGET foretoken_train)  # not built by `tools/dev build`, hence optional
  set_target_properties(foretoken_train foretoken_train_tokenizer PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS foretoken_train foretoken_train_tokenizer RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} OPTIONAL)
endif()
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The library.
set(modules ${FORETOKEN_MODULES})
list(REMOVE_ITEM modules capi)  # it is in the shared library
list(TRANSFORM modules PREPEND foretoken_ OUTPUT_VARIABLE libraries)
foreach(module IN LISTS modules ITEMS settings)
  set_target_properties(foretoken_${module} PROPERTIES EXPORT_NAME ${module})
endforeach()
install(DIRECTORY include/foretoken DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS foretoken foretoken_settings ${libraries} EXPORT foretoken
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
list(TRANSFORM libraries REPLACE "(.+)" "$<TARGET_FILE_NAME:\\1>" OUTPUT_VARIABLE archives)
install(CODE "
  if(CMAKE_INSTALL_DO_STRIP)
    get_filename_component(folder \"${CMAKE_INSTALL_LIBDIR}\" ABSOLUTE BASE_DIR \"\${CMAKE_INSTALL_PREFIX}\")
    foreach(archive ${archives})
      execute_process(COMMAND \"${CMAKE_STRIP}\" -g \"\$ENV{DESTDIR}\${folder}/\${archive}\" COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
  endif()")
if(TARGET foretoken_mpi)
  install(TARGETS foretoken_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET foretoken_shared)  # not built by `tools/dev build`, hence optional, and an export of its own
  install(FILES include/foretoken.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(TARGETS foretoken_shared EXPORT foretoken_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
  install(EXPORT foretoken_shared NAMESPACE foretoken:: FILE foretokenSharedTargets.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/foretoken)
endif()

# What programs and editors read.
install(FILES tests/vectors/verification.jsonl DESTINATION ${CMAKE_INSTALL_DATADIR}/foretoken/vectors)
install(DIRECTORY kit/ DESTINATION ${CMAKE_INSTALL_DATADIR}/foretoken/kit FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)
install(FILES docs/speculation.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/foretoken)

# The CMake package.
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/foretoken)
install(EXPORT foretoken NAMESPACE foretoken:: FILE foretokenTargets.cmake DESTINATION ${package_folder})
configure_package_config_file(cmake/foretokenConfig.cmake.in ${PROJECT_BINARY_DIR}/package/foretokenConfig.cmake
                              INSTALL_DESTINATION ${package_folder} PATH_VARS CMAKE_INSTALL_DATADIR NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/foretokenConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/foretokenConfig.cmake ${PROJECT_BINARY_DIR}/package/foretokenConfigVersion.cmake
        DESTINATION ${package_folder})

# The pkg-config file. An archive names what it needs before what others need of it: the last layer comes first.
list(REVERSE libraries)
list(TRANSFORM libraries PREPEND -l)
list(JOIN libraries " " pc_libraries)
list(TRANSFORM CMAKE_DL_LIBS PREPEND -l OUTPUT_VARIABLE pc_dl)
file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_prefix ${pc_prefix})
file(RELATIVE_PATH pc_libdir ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH pc_includedir ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
file(RELATIVE_PATH pc_datadir ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_DATADIR})
configure_file(cmake/foretoken.pc.in ${PROJECT_BINARY_DIR}/package/foretoken.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/foretoken.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET foretoken_shared)
  configure_file(cmake/foretoken-c.pc.in ${PROJECT_BINARY_DIR}/package/foretoken-c.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/package/foretoken-c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
