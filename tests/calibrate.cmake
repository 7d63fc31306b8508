# Calibration: readers of measurements, the fit, its figures on public microbenchmarks.
stepcast_test(measurements unit/nccl_log_test.cpp unit/measurement_tables_test.cpp unit/measurement_file_test.cpp unit/host_profile_test.cpp LINK stepcast_calibration)
# GCC 12 sees an array bound inside std::map of the JSON parser that isn't there.
set_source_files_properties(unit/nccl_log_test.cpp PROPERTIES COMPILE_OPTIONS -Wno-array-bounds)
stepcast_test(calibrate unit/least_squares_test.cpp unit/calibrate_test.cpp model/calibration_figures_test.cpp LINK stepcast_calibration)
stepcast_fuzzer(measurements fuzz/measurements.cpp LINK stepcast_calibration)
