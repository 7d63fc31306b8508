stepcast_test(strict_json unit/strict_json_test.cpp unit/text_units_test.cpp LINK stepcast_hw_models)
