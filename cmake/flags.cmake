# Warnings, sanitizers and the flags that every target shares, as one INTERFACE target.
add_library(convmish_flags INTERFACE)
set(host_warnings -Wall -Wextra -Wno-missing-field-initializers -Wshadow -Wconversion -Wsign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND host_warnings -Wno-restrict)  # GCC 12 warns of `"x" + std::string` (its bug 105651)
endif()
if(CONVMISH_WERROR)
  list(APPEND host_warnings -Werror)
endif()
list(JOIN host_warnings "," cuda_host_warnings)
string(REPLACE "-Wconversion,-Wsign-conversion" "-Wno-unused-parameter" cuda_host_warnings "${cuda_host_warnings}")  # nvcc's own stubs convert
target_compile_options(convmish_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:${host_warnings}>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${cuda_host_warnings} --expt-relaxed-constexpr -lineinfo>
  # Build paths stay out of reports and of the binary. nvcc hands on what it is given unquoted: a path may hold
  # spaces.
  $<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler="-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=">)
target_include_directories(convmish_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})

if(CONVMISH_SANITIZE)
  # Instrumented code makes GCC 12 see uninitialised values inside std::regex.
  target_compile_options(convmish_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  target_compile_options(convmish_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${CONVMISH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  target_link_options(convmish_flags INTERFACE -fsanitize=${CONVMISH_SANITIZE})
endif()

# For what computes: under the sanitizers all else is compiled without optimisation, in half the time.
add_library(convmish_kernel_flags INTERFACE)
if(CONVMISH_SANITIZE)
  target_compile_options(convmish_kernel_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-O1>)
endif()
