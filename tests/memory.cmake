stepcast_test(caching_allocator unit/allocator_sizes_test.cpp unit/caching_allocator_test.cpp unit/expandable_ranges_test.cpp unit/replay_test.cpp
  model/allocator_cases_test.cpp property/free_list_test.cpp property/allocator_property_test.cpp property/lazy_polling_test.cpp support/allocator_ops.cpp LINK stepcast_memory)
target_include_directories(test_caching_allocator PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})

stepcast_test(allocator_traces model/allocator_traces_test.cpp support/alloc_traces.cpp LINK stepcast_memory nlohmann_json::nlohmann_json)
# GCC 12 sees an array bound inside std::map of the JSON parser that isn't there.
set_source_files_properties(support/alloc_traces.cpp PROPERTIES COMPILE_OPTIONS -Wno-array-bounds)
target_include_directories(test_allocator_traces PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})

stepcast_bench(allocator bench/allocator_bench.cpp LINK stepcast_memory)

stepcast_fuzzer(allocator_ops fuzz/allocator_ops.cpp support/allocator_ops.cpp LINK stepcast_memory)
if(TARGET fuzz_allocator_ops)
  target_include_directories(fuzz_allocator_ops PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
endif()

# Recorded histories: the readers and their comparison.
stepcast_test(histories unit/history_test.cpp unit/snapshot_test.cpp unit/pickle_test.cpp LINK stepcast_memory nlohmann_json::nlohmann_json)
set_source_files_properties(unit/history_test.cpp unit/snapshot_test.cpp unit/pickle_test.cpp PROPERTIES COMPILE_OPTIONS -Wno-array-bounds)
stepcast_fuzzer(history fuzz/history.cpp LINK stepcast_memory)
