# The check and count executors: on programs built by hand, and with faults planted in what the builder makes.
stepcast_test(program_checks unit/check_test.cpp unit/count_test.cpp property/planted_faults_test.cpp LINK stepcast_program)
