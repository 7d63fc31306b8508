# The check and count executors on programs built by hand.
stepcast_test(program_checks unit/check_test.cpp unit/count_test.cpp LINK stepcast_program)
