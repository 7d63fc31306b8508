// From traces to a diagnosis in the forms that were asked for: what `stepcast diagnose` and the Python module do. docs/diagnose.md; test: tests/golden/diagnose_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "cli/diagnose/inferred.hpp"
#include "cli/page/page.hpp"

namespace stepcast::cli {

struct DiagnosisForms {
  bool json = false, text = false, page = false;
};

struct Diagnosis {
  std::string json, text;  // empty where not asked for
  Page page;
  Inferred inferred;
};

/// `traces`: files, archives and folders, a file a rank, read one at a time. Throws InputError.
Diagnosis diagnose_traces(const std::vector<std::string>& traces, const InferenceOptions& inference, const DiagnosisForms& forms);

}  // namespace stepcast::cli
