stepcast_test(sim unit/draws_test.cpp unit/event_queue_test.cpp unit/simulate_test.cpp unit/variation_test.cpp model/sharing_test.cpp model/data_loader_test.cpp LINK stepcast_sim)
stepcast_test(schedules property/fixed_cost_test.cpp model/schedule_test.cpp LINK stepcast_sim)
stepcast_test(fsdp2_schedules property/fsdp2_fixed_cost_test.cpp LINK stepcast_sim)
