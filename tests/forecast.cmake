# Whole forecasts: settings, measured rows, bounds, the fingerprint of behaviour.
stepcast_test(forecast model/mpt_rows_test.cpp model/clusters_test.cpp model/shared_links_test.cpp model/settings_test.cpp property/bounds_test.cpp golden/fingerprint_test.cpp LINK stepcast_cli)
stepcast_bench(simulate bench/simulate_bench.cpp LINK stepcast_cli)
# Published memory figures and practitioners' observations.
stepcast_test(behaviours model/behaviours_test.cpp model/advice_test.cpp model/memory_points_test.cpp model/truths_memory_test.cpp model/truths_schedule_test.cpp LINK stepcast_cli)
