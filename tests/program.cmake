# The program builder: tables and ops, model sizes, kernel lists, the FSDP1 step.
stepcast_test(program
  unit/adamw_test.cpp
  unit/adapter_test.cpp
  unit/blocks_test.cpp
  unit/build_test.cpp
  unit/builder_test.cpp
  unit/dropout_test.cpp
  unit/experts_test.cpp
  unit/float8_test.cpp
  unit/frozen_test.cpp
  unit/fsdp1_test.cpp
  unit/intercept_test.cpp
  unit/layer_test.cpp
  unit/limiter_test.cpp
  unit/memory_of_step_test.cpp
  unit/model_rules_test.cpp
  unit/model_test.cpp
  unit/model_variety_test.cpp
  unit/native_test.cpp
  unit/optimizer_in_backward_test.cpp
  unit/program_text_test.cpp
  LINK stepcast_program)
