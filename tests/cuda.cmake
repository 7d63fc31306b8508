# The CUDA driver's own sources on fakes of CUDA, cuBLAS, NCCL and NVML, kernels as plain C++: needs neither nvcc nor the toolkit.
include(${PROJECT_SOURCE_DIR}/real_backend/cuda/sources.cmake)
set(fakes_of_apis fakes/cublas.cpp fakes/cudart.cpp fakes/cudart_memory.cpp fakes/nccl.cpp fakes/nvml.cpp)
set(fakes ${fakes_of_apis} fakes/machine.cpp fakes/memory.cpp fakes/nccl_collective.cpp fakes/stream.cpp)
set_source_files_properties(${cuda_kernels} PROPERTIES LANGUAGE CXX)
stepcast_library(cuda_on_fakes ${cuda_sources} ${cuda_kernels} ${fakes} LINK stepcast_real_backend Eigen3::Eigen ${CMAKE_DL_LIBS})
target_include_directories(stepcast_cuda_on_fakes PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/fakes/include ${cuda_folder}/nvml)
set_target_properties(stepcast_cuda_on_fakes PROPERTIES EXCLUDE_FROM_ALL TRUE)
# For scripts/coverage.py.
option(STEPCAST_COVERAGE "Count the lines of the CUDA driver that its tests run" OFF)
if(STEPCAST_COVERAGE)
  target_compile_options(stepcast_cuda_on_fakes PUBLIC --coverage)
  target_link_options(stepcast_cuda_on_fakes PUBLIC --coverage)
endif()

stepcast_test(cuda
  unit/cuda_bench_test.cpp
  unit/cuda_device_test.cpp
  unit/cuda_fakes_test.cpp
  unit/cuda_kernels_test.cpp
  unit/cuda_launch_test.cpp
  unit/cuda_monitor_test.cpp
  unit/cuda_train_test.cpp
  LINK stepcast_cuda_on_fakes nlohmann_json::nlohmann_json)

set_target_properties(test_cuda PROPERTIES ENABLE_EXPORTS ON)  # dlopen finds the fakes of NVML in the program itself

# Where the toolkit is, its headers must accept the fakes' definitions.
if(STEPCAST_CUDA_FOUND)
  add_library(fakes_match_the_toolkit OBJECT EXCLUDE_FROM_ALL ${fakes_of_apis})
  # Not every toolkit has NVML's header.
  find_path(STEPCAST_nvml_INCLUDE nvml.h HINTS ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH)
  target_include_directories(fakes_match_the_toolkit PRIVATE $<$<NOT:$<BOOL:${STEPCAST_nvml_INCLUDE}>>:${cuda_folder}/nvml>)
  target_link_libraries(fakes_match_the_toolkit PRIVATE stepcast_options Eigen3::Eigen CUDA::cudart CUDA::cublas stepcast::nccl)
  if(STEPCAST_TESTS)
    set_target_properties(fakes_match_the_toolkit PROPERTIES EXCLUDE_FROM_ALL FALSE)
  endif()
endif()
