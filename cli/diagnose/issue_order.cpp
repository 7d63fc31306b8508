// Test: tests/unit/inference_test.cpp.
#include "cli/diagnose/issue_order.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;
using profile::Pass;

constexpr double kGradients = 1e5;  // bytes of an all-reduce from which it is one of gradients, not of their norm

enum class Act : std::uint8_t { gather, reduce, all_reduce, compute };

struct Deed {
  Act act = Act::compute;
  bool forward = true;
  double elements = 0;  // of the message, where it is recorded
};

double elements_of(const profile::SentMessage& message) {
  return message.dtype ? message.bytes / static_cast<double>(hw::bytes_per_element(*message.dtype)) : 0;
}

std::vector<Deed> deeds_of(const profile::Workload& work) {
  std::vector<Deed> deeds;
  for (const profile::Issued& issued : work.order) {
    const bool forward = issued.pass == Pass::forward;
    if (issued.pass == Pass::optimizer) continue;
    if (!issued.message) {
      deeds.push_back({Act::compute, forward, 0});
      continue;
    }
    const profile::SentMessage& message = work.messages[*issued.message];
    if (message.type == "allgather") deeds.push_back({Act::gather, forward, elements_of(message)});
    else if (message.type == "reducescatter") deeds.push_back({Act::reduce, forward, elements_of(message)});
    else if (message.type == "allreduce" && (message.bytes == 0 || message.bytes >= kGradients)) deeds.push_back({Act::all_reduce, forward, 0});
  }
  return deeds;
}

using Place = std::vector<Deed>::const_iterator;

bool is(const Deed& deed, Act act) { return deed.act == act; }

/// Begins of the last forward and of the backward behind it, by what computes in them. A gather belongs to what computes next.
struct LastPasses {
  Place forward, backward, end;
};
LastPasses last_passes(const std::vector<Deed>& deeds) {
  LastPasses last{deeds.begin(), deeds.end(), deeds.end()};
  bool in_forward = false;
  for (auto at = deeds.begin(); at != deeds.end(); ++at) {
    if (at->forward && !in_forward) last.forward = at;
    if (!at->forward && in_forward) last.backward = at;
    in_forward = at->forward;
  }
  if (last.backward < last.forward) last.backward = deeds.end();
  return last;
}

/// Whether the gradients are those of a unit that the backward gathers; others are kept from the forward. Where a size is not recorded, they are.
bool is_gathered(const Deed& reduction, Place begin, Place end) {
  return std::any_of(begin, end, [&](const Deed& d) {
    return is(d, Act::gather) && (d.elements == 0 || reduction.elements == 0 || std::fabs(d.elements - reduction.elements) < 1e-5 * d.elements);
  });
}

void look_at_backward(Place begin, Place end, IssueOrder& order) {
  std::int64_t gathers = 0, reductions = 0;
  bool computed = false;  // since the last gather
  for (auto at = begin; at != end; ++at) {
    if (is(*at, Act::compute)) computed = true;
    if (is(*at, Act::gather)) ++gathers, computed = false;
    if (!is(*at, Act::reduce) || !is_gathered(*at, begin, end)) continue;
    ++reductions;
    if (gathers - reductions <= order.lead) continue;
    order.lead = gathers - reductions;
    order.before_computation = computed;
  }
}

/// Carries gradients: a reduce-scatter does, and an all-reduce that is too large for anything else where there is no reduce-scatter before it.
bool reduces_gradients(const profile::SentMessage& message, bool found) {
  return message.type == "reducescatter" || (message.type == "allreduce" && message.bytes >= kGradients && !found);
}

void look_at_messages(const profile::Workload& work, IssueOrder& order) {
  for (const profile::Issued& issued : work.order) {
    if (!issued.message || issued.pass == Pass::optimizer) continue;
    const profile::SentMessage& message = work.messages[*issued.message];
    if (message.type == "allgather") {
      auto& ranks = issued.pass == Pass::forward ? order.forward_ranks : order.backward_ranks;
      ranks = std::max(ranks, message.ranks);
      if (message.dtype) order.gathered = message.dtype;
    } else if (message.dtype && reduces_gradients(message, order.reduced.has_value())) {
      order.reduced = message.dtype;
    }
  }
}

}  // namespace

IssueOrder issue_order(const profile::Workload& work, double forwards) {
  IssueOrder order;
  const std::vector<Deed> deeds = deeds_of(work);
  const auto count = [&](Act act, bool forward, bool either) {
    return static_cast<double>(std::count_if(deeds.begin(), deeds.end(), [&](const Deed& d) { return is(d, act) && (either || d.forward == forward); })) /
           forwards;
  };
  order.forward_gathers = count(Act::gather, true, false);
  order.backward_gathers = count(Act::gather, false, false);
  order.reductions = count(Act::reduce, false, true);
  order.forward_all_reduces = count(Act::all_reduce, true, false);
  order.all_reduces = count(Act::all_reduce, false, false);
  const LastPasses last = last_passes(deeds);
  const auto first = std::find_if(last.forward, last.backward, [](const Deed& d) { return is(d, Act::compute); });
  order.before_first = std::count_if(last.forward, first, [](const Deed& d) { return is(d, Act::gather); });
  look_at_backward(last.backward, last.end, order);
  look_at_messages(work, order);
  return order;
}

}  // namespace stepcast::cli
