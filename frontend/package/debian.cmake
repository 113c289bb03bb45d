# CPack runs this on each component's installed files, before they become a Debian package. Adds what Debian requires: a
# compressed manual page, and a copyright file and a changelog in each package.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(name ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX}/share)
  file(REMOVE ${root}/doc/ngrad/LICENSE)
  configure_file(${CPACK_NGRAD_COPYRIGHT} ${root}/doc/${name}/copyright COPYONLY)
  file(WRITE ${root}/doc/${name}/changelog "ngrad (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Made by cpack from the sources of version ${CPACK_PACKAGE_VERSION}.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  file(GLOB manuals ${root}/man/man?/*)
  foreach(file IN LISTS manuals ITEMS ${root}/doc/${name}/changelog)
    execute_process(COMMAND gzip -9 --no-name --force ${file} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endforeach()
