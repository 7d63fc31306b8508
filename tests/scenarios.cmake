stepcast_test(strict_json unit/strict_json_test.cpp unit/text_units_test.cpp LINK stepcast_hw_models)
stepcast_test(scenarios unit/scenario_test.cpp unit/layers_test.cpp unit/presets_test.cpp unit/hf_config_test.cpp LINK stepcast_scenarios)
