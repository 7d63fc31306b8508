# DeepSpeed's ZeRO and what is offloaded to the host.
stepcast_test(zero unit/zero_test.cpp unit/zero3_test.cpp unit/offload_test.cpp LINK stepcast_program)
