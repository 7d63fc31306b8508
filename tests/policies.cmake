# Policies of FSDP1 and recomputation: counts by hand, and a pairwise grid of all options.
stepcast_test(policies unit/recompute_test.cpp unit/strategies_test.cpp unit/wrapping_test.cpp property/policy_grid_test.cpp LINK stepcast_sim)
stepcast_test(policy_keys unit/policy_keys_test.cpp LINK stepcast_scenarios)
