stepcast_test(trace
  unit/intervals_test.cpp unit/breakdown_test.cpp unit/gap_walk_test.cpp
  LINK stepcast_trace)
