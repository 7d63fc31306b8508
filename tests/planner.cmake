# The planner: grids, sweeps, searches.
stepcast_test(planner unit/grid_test.cpp unit/search_test.cpp LINK stepcast_planner)
stepcast_test(tune unit/tune_test.cpp unit/paste_test.cpp LINK stepcast_cli)
stepcast_test(sweep unit/sweep_test.cpp LINK stepcast_cli LABELS threads)
stepcast_test(explain unit/explain_test.cpp LINK stepcast_cli)
stepcast_test(sweep_cli golden/sweep_test.cpp golden/tune_cli_test.cpp golden/import_test.cpp LINK nlohmann_json::nlohmann_json)
target_compile_definitions(test_sweep_cli PRIVATE STEPCAST_BINARY="$<TARGET_FILE:stepcast>")
add_dependencies(test_sweep_cli stepcast)
stepcast_fuzzer(sweep_file fuzz/sweep_file.cpp LINK stepcast_cli stepcast_planner)
