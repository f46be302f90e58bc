# SPDX-License-Identifier: Apache-2.0
# An overlay port that builds the tree in which it lies (docs/install.md).
set(SOURCE_PATH "${CURRENT_PORT_DIR}/../../..")
vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES program FORETOKEN_APPS server FORETOKEN_SERVER)
vcpkg_find_acquire_program(PKGCONFIG)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${features} "-DPKG_CONFIG_EXECUTABLE=${PKGCONFIG}" -DFORETOKEN_UNITY=ON -DFORETOKEN_TESTS=OFF -DFORETOKEN_EXAMPLES=OFF
          -DFORETOKEN_TRAIN=OFF -DFORETOKEN_MPI=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/foretoken)
vcpkg_fixup_pkgconfig()
if("program" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES foretoken AUTO_CLEAN)
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
