#include "trace/breakdown.hpp"
