// Parameter counts against published totals, flat-parameter padding and gradient division by hand.
#include "program/model.hpp"

#include <doctest/doctest.h>

#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

TEST_CASE("published parameter counts") {
  CHECK(parameters(test::llama2_7b()) == 6'738'415'616);
  CHECK(parameters_per_block(test::llama2_7b()) == 202'383'360);
  CHECK(root_parameters(test::llama2_7b()) == 262'148'096);
  CHECK(parameters(test::llama3_8b()) == 8'030'261'248);
  CHECK(parameters(test::mpt_7b()) == 6'658'859'008);
  CHECK(parameters_per_block(test::mpt_7b()) == 201'379'840);
  CHECK(parameters(test::gpt2_xl()) == 1'557'611'200);
  CHECK(parameters_per_block(test::gpt2_xl()) == 30'740'800);
}

TEST_CASE("parameters in matrix products") {
  // Llama-2-7B: all but the embedding table (32000 x 4096) and 65 norm weights of 4096.
  CHECK(matmul_parameters(test::llama2_7b()) == 6'738'415'616 - 131'072'000 - 65 * 4096);
  // Tied: the table is the head's weight too and counts once. GPT-2 XL: 48 blocks of 12 h^2 and the head.
  CHECK(matmul_parameters(test::gpt2_xl()) == 48 * 12 * 1600 * 1600 + 50257 * 1600);
}

TEST_CASE("tensors per unit") {
  CHECK(block_tensors(test::llama2_7b()).size() == 9);  // 7 weights, 2 norms
  CHECK(block_tensors(test::gpt2_xl()).size() == 12);   // 4 weights, 4 biases, 2 norms of 2
  CHECK(root_tensors(test::llama2_7b()).size() == 3);   // embedding, norm, head
  CHECK(root_tensors(test::gpt2_xl()).size() == 4);     // tied embedding, positions, norm of 2
}

TEST_CASE("flat parameter: shards of equal length, inner padding only with use_orig_params") {
  const FlatParameter block = flatten(block_tensors(test::llama2_7b()), 32, false, hw::Dtype::bf16);
  CHECK(block.elements == 202'383'360);
  CHECK(block.shard == 6'324'480);
  const std::vector<ParameterTensor> odd{{"a", 5, true}, {"b", 3, true}, {"c", 9, true}};
  const FlatParameter plain = flatten(odd, 4, false, hw::Dtype::bf16);  // 17 elements: shards of 5
  CHECK(plain.elements == 17);
  CHECK(plain.shard == 5);
  CHECK(plain.padded() == 20);
  const FlatParameter aligned = flatten(odd, 4, true, hw::Dtype::bf16);  // b at 8, c at 16, end 25 -> 28
  CHECK(aligned.elements == 28);
  CHECK(aligned.shard == 7);
  CHECK(aligned.padded() == aligned.elements);
  CHECK(flatten(odd, 4, true, hw::Dtype::fp32).elements == 24);  // boundaries of 4 elements: b at 8, c at 12, end 21 -> 24
}

TEST_CASE("gradient division") {
  const auto check = [](std::int64_t ranks, double pre, double post) {
    CHECK(divide_factors(ranks).pre == pre);
    CHECK(divide_factors(ranks).post == post);
  };
  check(1, 1, 1);
  check(2, 2, 1);
  check(8, 4, 2);
  check(32, 8, 4);
  check(64, 8, 8);
  check(3, 2, 1.5);
  check(6, 4, 1.5);  // 6 is even: 1 -> 2; 6/2 = 3 > 2 -> 4; 4 does not divide 6
}

}  // namespace
}  // namespace stepcast::program
