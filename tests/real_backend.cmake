# The real backend on the host: kernels, streams, collectives, training.
stepcast_test(real_backend
  unit/train_test.cpp
  LINK stepcast_real_backend nlohmann_json::nlohmann_json
  LABELS threads)

stepcast_test(train_grid
  property/train_grid_test.cpp
  LINK stepcast_real_backend nlohmann_json::nlohmann_json
  LABELS threads)
