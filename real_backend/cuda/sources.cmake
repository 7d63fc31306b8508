# Sources of the CUDA driver, for its library and for the tests' build on fakes.
set(cuda_folder ${CMAKE_CURRENT_LIST_DIR})
set(cuda_sources
  ${cuda_folder}/check.cpp
  ${cuda_folder}/communicators.cpp
  ${cuda_folder}/device.cpp
  ${cuda_folder}/driver.cpp
  ${cuda_folder}/handles.cpp
  ${cuda_folder}/kernels/attention.cpp
  ${cuda_folder}/kernels/blas.cpp
  ${cuda_folder}/kernels/gemm.cpp
  ${cuda_folder}/kernels/run.cpp
  ${cuda_folder}/lane.cpp
  ${cuda_folder}/monitor.cpp
  ${cuda_folder}/segments.cpp)
set(cuda_kernels
  ${cuda_folder}/kernels/elementwise.cu
  ${cuda_folder}/kernels/ends.cu
  ${cuda_folder}/kernels/linear.cu
  ${cuda_folder}/kernels/norm.cu
  ${cuda_folder}/kernels/optimizer.cu
  ${cuda_folder}/kernels/rope.cu
  ${cuda_folder}/kernels/softmax.cu)
