stepcast_test(strict_json unit/strict_json_test.cpp unit/text_units_test.cpp LINK stepcast_hw_models)
stepcast_test(scenarios unit/scenario_test.cpp unit/layers_test.cpp unit/scenario_template_test.cpp unit/allocator_sets_test.cpp unit/presets_test.cpp unit/hf_config_test.cpp unit/scenario_doc_test.cpp
  LINK stepcast_scenarios)
stepcast_fuzzer(scenario fuzz/scenario.cpp LINK stepcast_scenarios)
stepcast_fuzzer(unit_text fuzz/unit_text.cpp LINK stepcast_hw_models)
stepcast_fuzzer(hf_config fuzz/hf_config.cpp LINK stepcast_scenarios)
stepcast_test(imports unit/text_formats_test.cpp unit/training_config_test.cpp property/import_values_test.cpp LINK stepcast_scenarios)
stepcast_fuzzer(training_config fuzz/training_config.cpp LINK stepcast_scenarios)
