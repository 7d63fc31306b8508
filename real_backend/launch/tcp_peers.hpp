// Letters over TCP, for ranks that meet without MPI: the first process waits at a port, the others come to it and say who they are. docs/real_backend.md, "Several processes";
// test: tests/unit/launch_test.cpp.
#pragma once

#include <memory>

#include "hw_models/input_error.hpp"
#include "real_backend/launch/peers.hpp"
#include "real_backend/launch/place.hpp"

namespace stepcast::real {

/// What a launcher said, and this process alone may have found wrong.
struct NotMet final : InputError {
  using InputError::InputError;
};

/// Waits until all are there. Throws NotMet where the first one's host is unknown. Throws std::runtime_error: by the first, which ranks have not come within the deadline, and who was turned away; by the others, that the first does
/// not answer, or why it turned them away.
std::unique_ptr<Peers> meet_by_tcp(const Place& place, double deadline_s);

}  // namespace stepcast::real
