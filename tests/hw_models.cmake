stepcast_test(units unit/units_test.cpp LINK stepcast_hw_models)
