# Every package the tool uses: an installed one first, a pinned download where none is installed.
# CUDA, cuDNN and oneDNN are found or left out; one status line each says which.
include(FetchContent)

FetchContent_Declare(fmt
  URL https://github.com/fmtlib/fmt/archive/refs/tags/9.1.0.tar.gz
  URL_HASH SHA256=5dea48d1fcddc3ec571ce2058e13910a0d4a6bab4cc09a809d8b1dd1c88ae6f2
  FIND_PACKAGE_ARGS 9)
FetchContent_Declare(nlohmann_json
  URL https://github.com/nlohmann/json/releases/download/v3.11.2/json.tar.xz
  URL_HASH SHA256=8c4b26bf4b422252e13f332bc5e388ec0ab5c3443d24399acb675e68278d341f
  FIND_PACKAGE_ARGS 3.10)
FetchContent_Declare(cxxopts
  URL https://github.com/jarro2783/cxxopts/archive/refs/tags/v3.1.1.tar.gz
  URL_HASH SHA256=523175f792eb0ff04f9e653c90746c12655f10cb70f1d5e6d6d9491420298a08
  FIND_PACKAGE_ARGS 3)
FetchContent_Declare(pugixml
  URL https://github.com/zeux/pugixml/releases/download/v1.13/pugixml-1.13.tar.gz
  URL_HASH SHA256=40c0b3914ec131485640fa57e55bf1136446026b41db91c1bef678186a12abbe
  FIND_PACKAGE_ARGS 1.11)
FetchContent_MakeAvailable(fmt nlohmann_json cxxopts pugixml)

# Header-only fmt: the binary then runs on machines that lack the shared library.
add_library(convmish_format INTERFACE)
target_link_libraries(convmish_format INTERFACE fmt::fmt-header-only)

# The static library, for the same reason, where there is one.
add_library(convmish_xml INTERFACE)
target_link_libraries(convmish_xml INTERFACE $<IF:$<TARGET_EXISTS:pugixml::static>,pugixml::static,pugixml::pugixml>)

find_package(Threads REQUIRED)
set(Boost_USE_STATIC_LIBS ON)
find_package(Boost 1.74 REQUIRED COMPONENTS context)

# --- CUDA ---------------------------------------------------------------------------------------------
set(CONVMISH_HAVE_CUDA OFF)
if(CONVMISH_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      # The GPU of this machine, else Hopper. 90a, not 90: wgmma and setmaxnreg need the "a" target.
      execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                      OUTPUT_VARIABLE capabilities ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
      string(REGEX MATCHALL "[0-9]+\\.[0-9]" capabilities "${capabilities}")
      string(REPLACE "." "" capabilities "${capabilities}")
      list(REMOVE_DUPLICATES capabilities)
      list(TRANSFORM capabilities REPLACE "^90$" "90a")
      if(NOT capabilities)
        set(capabilities 90a)
      endif()
      set(CMAKE_CUDA_ARCHITECTURES ${capabilities} CACHE STRING "CUDA architectures")
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know nvcc's C++20
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    set(CONVMISH_HAVE_CUDA ON)
    message(STATUS "CUDA: ${CUDAToolkit_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
  else()
    message(STATUS "CUDA: left out (no CUDA compiler found; set CUDACXX to name one)")
  endif()
else()
  message(STATUS "CUDA: left out (CONVMISH_CUDA=OFF)")
endif()

# --- cuBLAS: headers only; the library is loaded at run time, to measure tensor rates -------------------
set(CONVMISH_HAVE_CUBLAS OFF)
if(CONVMISH_HAVE_CUDA)
  find_path(CUBLAS_INCLUDE_DIR cublas_v2.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  if(CUBLAS_INCLUDE_DIR)
    set(CONVMISH_HAVE_CUBLAS ON)
    message(STATUS "cuBLAS: ${CUBLAS_INCLUDE_DIR}")
  else()
    message(STATUS "cuBLAS: left out (no cublas_v2.h; tensor rates are then the data sheet's)")
  endif()
endif()

# --- cuDNN: headers only; the library is loaded at run time --------------------------------------------
set(CONVMISH_HAVE_CUDNN OFF)
if(NOT CONVMISH_HAVE_CUDA OR NOT CONVMISH_CUDNN)
  message(STATUS "cuDNN: left out (it needs CUDA and CONVMISH_CUDNN=ON)")
else()
  find_path(CUDNN_INCLUDE_DIR cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV CUDNN_PATH PATH_SUFFIXES include)
  find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h
            HINTS ${PROJECT_SOURCE_DIR}/.deps/cudnn-frontend ENV CUDNN_FRONTEND_PATH PATH_SUFFIXES include)
  if(CUDNN_INCLUDE_DIR AND CUDNN_FRONTEND_INCLUDE_DIR)
    set(CONVMISH_HAVE_CUDNN ON)
    message(STATUS "cuDNN: ${CUDNN_INCLUDE_DIR}, cudnn-frontend: ${CUDNN_FRONTEND_INCLUDE_DIR}")
  elseif(NOT CUDNN_INCLUDE_DIR)
    message(STATUS "cuDNN: left out (no cudnn_graph.h; set CUDNN_INCLUDE_DIR)")
  else()
    message(STATUS "cuDNN: left out (no cudnn_frontend.h; scripts/setup.sh installs it, or set CUDNN_FRONTEND_INCLUDE_DIR)")
  endif()
endif()

# --- oneDNN -------------------------------------------------------------------------------------------
set(CONVMISH_HAVE_ONEDNN OFF)
if(CONVMISH_ONEDNN)
  # Not by its own package file: Debian's stops the configuration where there is no OpenCL.
  find_path(DNNL_INCLUDE_DIR dnnl.hpp)
  find_library(DNNL_LIBRARY dnnl)
  find_package(OpenMP QUIET COMPONENTS CXX)  # for the pass behind the convolution
  set(dnnl_version_header ${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h)
  set(dnnl_version "")
  if(EXISTS ${dnnl_version_header})
    file(STRINGS ${dnnl_version_header} dnnl_version REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
    list(TRANSFORM dnnl_version REPLACE ".* " "")
    list(JOIN dnnl_version "." dnnl_version)
  endif()
  if(NOT DNNL_INCLUDE_DIR OR NOT DNNL_LIBRARY)
    message(STATUS "oneDNN: left out (no dnnl.hpp or no libdnnl)")
  elseif(NOT dnnl_version MATCHES "^[23]\\.")
    message(STATUS "oneDNN: left out (version \"${dnnl_version}\"; want 2 or 3)")
  elseif(NOT OpenMP_CXX_FOUND)
    message(STATUS "oneDNN: left out (the compiler has no OpenMP)")
  else()
    set(CONVMISH_HAVE_ONEDNN ON)
    add_library(DNNL::dnnl UNKNOWN IMPORTED)
    set_target_properties(DNNL::dnnl PROPERTIES
      IMPORTED_LOCATION ${DNNL_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
    message(STATUS "oneDNN: ${dnnl_version}")
  endif()
else()
  message(STATUS "oneDNN: left out (CONVMISH_ONEDNN=OFF)")
endif()
