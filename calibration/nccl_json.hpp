// Reads the JSON that newer nccl-tests write with -J FILE (from 2.17). docs/calibration.md, "nccl-tests". Test: tests/unit/nccl_log_test.cpp.
#pragma once

#include <string>

#include "calibration/nccl_log.hpp"
#include "hw_models/strict_json.hpp"

namespace stepcast::calibration {

/// `document` has the key "results". Keys that aren't needed are passed over: the format is another project's. Throws InputError on values of the wrong type.
NcclRun read_nccl_json(const Json& document, const std::string& file);

}  // namespace stepcast::calibration
