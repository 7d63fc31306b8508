stepcast_test(units unit/units_test.cpp LINK stepcast_hw_models)
stepcast_test(hw_formulas
  model/attention_test.cpp
  model/collective_logs_test.cpp
  model/collective_test.cpp
  model/cost_model_test.cpp
  model/gemm_test.cpp
  model/host_copy_test.cpp
  model/kernel_test.cpp
  model/measured_times_test.cpp
  model/memory_bound_test.cpp
  model/microbenchmarks_test.cpp
  model/occupancy_test.cpp
  model/profiles_test.cpp
  model/utilisation_test.cpp
  LINK stepcast_hw_models)
stepcast_fuzzer(hardware_profile fuzz/hardware_profile.cpp LINK stepcast_hw_models)
