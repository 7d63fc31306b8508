# Ranks that differ, hosts and loaders; better hardware against longer steps.
stepcast_test(hosts model/truths_host_test.cpp property/ranks_test.cpp LINK stepcast_cli)
stepcast_test(monotonicity property/monotonicity_test.cpp LINK stepcast_cli)
