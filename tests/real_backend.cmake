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
