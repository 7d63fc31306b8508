# The real backend on the host: kernels, streams, collectives, training. The first runs under ThreadSanitizer too; the grid would take too long there.
stepcast_test(real_backend
  unit/host_bench_test.cpp
  unit/host_device_test.cpp
  unit/host_kernels_test.cpp
  unit/launch_test.cpp
  unit/train_test.cpp
  unit/training_test.cpp
  LINK stepcast_real_backend nlohmann_json::nlohmann_json
  LABELS threads)

stepcast_test(train_grid
  property/train_grid_test.cpp
  LINK stepcast_real_backend nlohmann_json::nlohmann_json)

stepcast_fuzzer(letters fuzz/letters.cpp LINK stepcast_real_backend)
stepcast_bench(executor bench/executor_bench.cpp LINK stepcast_real_backend nlohmann_json::nlohmann_json)
stepcast_bench(gemm bench/gemm_bench.cpp bench/eigen_product.cpp LINK stepcast_real_backend Eigen3::Eigen)
if(STEPCAST_HOST_ARCH)  # as real_backend/CMakeLists.txt does for the kernels
  set_source_files_properties(bench/eigen_product.cpp PROPERTIES
    COMPILE_OPTIONS "-march=${STEPCAST_HOST_ARCH};$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>")
endif()
