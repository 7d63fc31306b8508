#include "sim/simulate.hpp"
