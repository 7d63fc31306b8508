stepcast_test(trace
  unit/intervals_test.cpp unit/breakdown_test.cpp unit/gap_walk_test.cpp
  LINK stepcast_trace)
stepcast_test(chrome
  unit/chrome_writer_test.cpp unit/json_out_test.cpp unit/output_file_test.cpp support/chrome_check.cpp
  LINK stepcast_trace nlohmann_json::nlohmann_json)
stepcast_test(trace_of_simulation
  model/trace_of_simulation_test.cpp support/chrome_check.cpp
  LINK stepcast_sim nlohmann_json::nlohmann_json)
stepcast_test(profile
  unit/profile_critical_path_test.cpp unit/profile_files_test.cpp unit/profile_findings_test.cpp unit/profile_finer_causes_test.cpp unit/profile_gaps_test.cpp unit/profile_host_work_test.cpp unit/profile_memory_test.cpp unit/profile_metrics_test.cpp unit/profile_oddities_test.cpp unit/profile_operands_test.cpp unit/profile_passes_test.cpp unit/profile_processes_test.cpp unit/profile_ranks_test.cpp unit/profile_rates_test.cpp unit/profile_reader_test.cpp
  unit/profile_scan_test.cpp unit/profile_vocabulary_test.cpp unit/profile_what_if_test.cpp
  LINK stepcast_trace)
stepcast_test(profile_figures model/profile_figures_test.cpp model/profile_findings_test.cpp model/profile_planted_test.cpp model/profile_planted_causes_test.cpp LINK stepcast_cli)
stepcast_test(inference unit/inference_test.cpp model/inference_grid_test.cpp LINK stepcast_cli)
stepcast_test(calibrate_trace model/calibrate_trace_test.cpp LINK stepcast_cli)
stepcast_fuzzer(profile fuzz/profile.cpp LINK stepcast_trace)
stepcast_fuzzer(inference fuzz/inference.cpp LINK stepcast_cli)
