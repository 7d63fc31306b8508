#include "memory/caching_allocator.hpp"
