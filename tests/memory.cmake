stepcast_test(allocator_traces model/allocator_traces_test.cpp support/alloc_traces.cpp LINK stepcast_memory nlohmann_json::nlohmann_json)
target_include_directories(test_allocator_traces PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
stepcast_bench(allocator bench/allocator_bench.cpp LINK stepcast_memory)
