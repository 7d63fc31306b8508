# Reports and comparisons as a library; then the built command as a user meets it.
stepcast_test(report unit/report_test.cpp unit/compare_test.cpp unit/out_of_memory_test.cpp unit/gpu_watch_test.cpp LINK stepcast_cli)
stepcast_test(cli golden/cli_test.cpp golden/replay_test.cpp golden/validate_test.cpp golden/calibrate_cli_test.cpp golden/diagnose_test.cpp golden/diagnose_scenario_test.cpp LINK nlohmann_json::nlohmann_json stepcast_trace)
add_dependencies(test_cli stepcast)

stepcast_test(train_cli golden/train_cli_test.cpp golden/train_mpi_test.cpp golden/closed_loop_test.cpp LINK nlohmann_json::nlohmann_json)
target_compile_definitions(test_train_cli PRIVATE STEPCAST_MPIRUN="$<$<BOOL:${STEPCAST_MPI_FOUND}>:${MPIEXEC_EXECUTABLE}>")
add_dependencies(test_train_cli stepcast)

# The page that follows its sliders: what is answered, without sockets, then the command over one.
stepcast_test(serve unit/serve_test.cpp LINK stepcast_cli)
stepcast_test(serve_cli golden/serve_test.cpp LINK nlohmann_json::nlohmann_json Threads::Threads)
add_dependencies(test_serve_cli stepcast)
stepcast_fuzzer(serve_request fuzz/serve_request.cpp LINK stepcast_cli)

stepcast_test(page unit/page_test.cpp unit/page_timeline_test.cpp unit/sweep_page_test.cpp unit/diagnose_page_test.cpp unit/compare_page_test.cpp unit/validate_page_test.cpp LINK stepcast_cli)
