# The script of HTML pages: ECharts from npm at the versions of package-lock.json, bundled with page.js. Sets
# COLLCAST_PAGE_SOURCE. Where npm is not there or cannot fetch, the program is built without, and says so when asked.
set(here "${CMAKE_CURRENT_LIST_DIR}")
set(work "${CMAKE_CURRENT_BINARY_DIR}/html")
set(COLLCAST_PAGE_LACKS "")
file(MAKE_DIRECTORY "${work}")

if(NOT COLLCAST_WITH_HTML)
  set(COLLCAST_PAGE_LACKS "it was configured with COLLCAST_WITH_HTML=OFF")
else()
  find_program(COLLCAST_NODE node)
  find_program(COLLCAST_NPM npm)
  if(NOT COLLCAST_NODE OR NOT COLLCAST_NPM)
    set(COLLCAST_PAGE_LACKS "nodejs and npm were not found when it was configured")
  endif()
endif()

if(NOT COLLCAST_PAGE_LACKS)
  # Fetched once per lock file, and again as long as it failed.
  file(SHA256 "${here}/package-lock.json" lock)
  set(stamp "${work}/${lock}.done")
  if(NOT EXISTS "${stamp}")
    file(COPY "${here}/package.json" "${here}/package-lock.json" DESTINATION "${work}")
    execute_process(COMMAND "${COLLCAST_NPM}" ci --ignore-scripts --no-audit --no-fund --loglevel=error
      WORKING_DIRECTORY "${work}" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE said TIMEOUT 300)
    if(failed)
      set(COLLCAST_PAGE_LACKS "npm could not fetch ECharts when it was configured")
      message(WARNING "HTML pages are left out: npm ci failed\n${said}")
    else()
      file(TOUCH "${stamp}")
    endif()
  endif()
endif()

set(COLLCAST_PAGE_LACKS "${COLLCAST_PAGE_LACKS}" CACHE INTERNAL "Why there are no HTML pages; empty: there are")
if(COLLCAST_PAGE_LACKS)
  message(STATUS "HTML pages: no (${COLLCAST_PAGE_LACKS})")
  set(COLLCAST_PAGE_SOURCE "${work}/no_page.cpp")
  configure_file("${here}/no_page.cpp.in" "${COLLCAST_PAGE_SOURCE}" @ONLY)
else()
  message(STATUS "HTML pages: yes")
  set(COLLCAST_PAGE_SOURCE "${work}/page.cpp")
  add_custom_command(OUTPUT "${COLLCAST_PAGE_SOURCE}"
    COMMAND "${COLLCAST_NODE}" "${here}/build.mjs" "${work}" "${COLLCAST_PAGE_SOURCE}"
    DEPENDS "${here}/build.mjs" "${here}/page.js" "${here}/page.css" "${here}/package-lock.json"
    COMMENT "Bundling the script of HTML pages" VERBATIM)
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${here}/package-lock.json")
set(COLLCAST_PAGE_SOURCE "${COLLCAST_PAGE_SOURCE}" CACHE INTERNAL "What holds the script, or says that there is none")
