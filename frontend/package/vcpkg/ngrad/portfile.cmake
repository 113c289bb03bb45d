# The library, its header and the program, from the sources that this port lies in:
#   vcpkg install ngrad --overlay-ports=frontend/package/vcpkg
# tests/package/recipes.sh runs this file with stand-ins for vcpkg's functions.
vcpkg_check_linkage(ONLY_DYNAMIC_LIBRARY)
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)

vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS -DBUILD_TESTING=OFF)
vcpkg_cmake_install()
vcpkg_copy_tools(TOOL_NAMES ngrad AUTO_CLEAN)
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/ngrad)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share" "${CURRENT_PACKAGES_DIR}/lib/python3")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
