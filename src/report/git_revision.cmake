# Run at every build: writes HEADER with the revision of SOURCE_DIR, only when it changed, so that nothing
# is rebuilt without need. The environment variable CONVMISH_GIT_REVISION says it for a copy without git.
cmake_minimum_required(VERSION 3.25)

set(revision "$ENV{CONVMISH_GIT_REVISION}")
if(NOT revision AND GIT_EXECUTABLE)
  # A copy unpacked inside another repository is not that repository: the prefix of its root is empty.
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --show-prefix
                  WORKING_DIRECTORY ${SOURCE_DIR} RESULT_VARIABLE no_repository
                  OUTPUT_VARIABLE prefix ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT no_repository AND prefix STREQUAL "")
    execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=12 --exclude=*
                    WORKING_DIRECTORY ${SOURCE_DIR}
                    OUTPUT_VARIABLE revision ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
endif()
if(NOT revision MATCHES "^[0-9A-Za-z._-]+$")
  set(revision unknown)
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define CONVMISH_GIT_REVISION \"@revision@\"\n" @ONLY)
