#include "program/spec.hpp"
