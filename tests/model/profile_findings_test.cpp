// What experienced readers found in public profiles must be found, and first. The profiles are not part of this tree.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "support/paths.hpp"
#include "trace/profile/findings.hpp"
#include "trace/profile/import.hpp"

using namespace stepcast::trace::profile;

namespace {

const std::string kFiles = stepcast::test::source_dir() + "/../shared/traces/files/";

bool files_present() {
  if (std::filesystem::exists(kFiles)) return true;
  MESSAGE("skipped: no profiles at " << kFiles);
  return false;
}

RankDiagnosis rank_of(const std::string& slug) { return diagnose(import_profile(*inputs_at(kFiles + slug + ".json.gz").at(0).open(), slug)); }

std::vector<std::string> names(const std::vector<Finding>& findings) {
  std::vector<std::string> out;
  for (const Finding& f : findings) out.push_back(f.name);
  return out;
}

bool has(const std::vector<std::string>& list, const std::string& name) { return std::find(list.begin(), list.end(), name) != list.end(); }

std::vector<Finding> across(const std::string& job, int ranks) {
  std::vector<RankSummary> summaries;
  Time window{};
  for (int r = 0; r < ranks; ++r) {
    const RankDiagnosis rank = rank_of(job + "_rank" + std::to_string(r));
    summaries.push_back(summaries_of(rank.profile, r).at(0));
    for (const DeviceMetrics& device : rank.devices) window = std::max(window, device.whole_window.span);
  }
  return findings_across(compare_ranks(std::move(summaries)), window);
}

}  // namespace

TEST_CASE("the first finding of known profiles") {
  if (!files_present()) return;
  const std::vector<std::pair<std::string, std::string>> known = {{"kineto_resnet50_v100_workers0_mem", "starved_data_loader"},
                                                                  {"kineto_resnet50_v100_workers4_mem", "launch_bound"},
                                                                  {"param_resnet_2080ti_dataloader", "starved_data_loader"},
                                                                  {"tl_ddp_resnet18_mi300_nopool", "allocator_thrash"},
                                                                  {"torchrec_dlrm_a2a3_v100_4r_rank0", "allocator_thrash"},
                                                                  {"torchrec_dlrm_sleep_v100_4r_rank2", "host_paused_outside_torch"},
                                                                  {"torchrec_dlrm_sleep_v100_4r_rank0", "exposed_communication"},
                                                                  {"megatron_tp8_a100_8r_rank4", "exposed_communication"},
                                                                  {"hta_ddp_v100_2r_rank1_mem", "launch_bound"},
                                                                  {"hta_nccl_a100_2r_rank0", "launch_bound"},
                                                                  {"puz_d2h_first_sum", "reads_of_single_values"}};
  for (const auto& [slug, first] : known) {
    const auto found = names(findings_of(rank_of(slug)));
    REQUIRE_MESSAGE(!found.empty(), slug);
    CHECK_MESSAGE(found[0] == first, slug << ": " << found[0]);
  }
}

TEST_CASE("what is also there, and what is not") {
  if (!files_present()) return;
  CHECK(has(names(findings_of(rank_of("hta_ddp_v100_2r_rank1_mem"))), "exposed_communication"));
  CHECK(has(names(findings_of(rank_of("kineto_resnet50_workers0_autograd_api"))), "warm_up_recorded"));
  CHECK_FALSE(has(names(findings_of(rank_of("kineto_resnet50_v100_workers4_mem"))), "starved_data_loader"));
  CHECK_FALSE(has(names(findings_of(rank_of("deepseek_dualpipe_h800_64r_rank0"))), "exposed_communication"));
}

TEST_CASE("late ranks: the sleeper, and the two of the tensor-parallel group") {
  if (!files_present()) return;
  for (const char* job : {"torchrec_dlrm_sleep_v100_4r", "torchrec_dlrm_a2a1_v100_4r"}) {
    const auto found = across(job, 4);
    REQUIRE(!found.empty());
    CHECK(found[0].name == "straggler");
    CHECK(found[0].where == "rank 2");
    CHECK(found[0].share > 0.8);
  }
  const auto found = across("megatron_tp8_a100_8r", 8);
  REQUIRE(!found.empty());
  CHECK(found[0].where == "rank 0, rank 6");
}
