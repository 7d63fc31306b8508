# The program builder: tables and ops, model sizes, kernel lists, the FSDP1 step.
stepcast_test(program unit/builder_test.cpp unit/model_test.cpp unit/limiter_test.cpp unit/fsdp1_test.cpp unit/build_test.cpp LINK stepcast_program)
