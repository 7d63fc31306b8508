# FSDP2 and DDP: schedules, memory, which settings belong to whom, and that the checker finds nothing in any combination.
stepcast_test(frameworks
  unit/ddp_test.cpp
  unit/framework_rules_test.cpp
  unit/fsdp2_memory_test.cpp
  unit/fsdp2_test.cpp
  property/frameworks_clean_test.cpp
  LINK stepcast_program nlohmann_json::nlohmann_json)
# GCC 12 sees an array bound inside std::map of the JSON parser that isn't there.
set_source_files_properties(unit/fsdp2_test.cpp PROPERTIES COMPILE_OPTIONS -Wno-array-bounds)
stepcast_test(frameworks_forecast model/frameworks_forecast_test.cpp LINK stepcast_cli)
