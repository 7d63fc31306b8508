// Tables of kernel times: what each row becomes, which rows have no formula, strict cells.
#include "calibration/tables.hpp"

#include <doctest/doctest.h>

#include "calibration/read_measurements.hpp"
#include "hw_models/input_error.hpp"

using namespace stepcast;
using namespace stepcast::calibration;

namespace {

const std::string kGemm = "gpu,dtype,op,batch,m,n,k,time_us,method\n";
const std::string kAttention = "gpu,impl,pass,head_dim,causal,seqlen,batch,heads,tflops\n";
const std::string kMemory = "gpu,op,impl,pass,dtype,time_us,ideal_bytes,method\n";

MeasurementFile parsed(const std::string& text) { return parse_measurements(text, "t.csv"); }

}  // namespace

TEST_CASE("GEMM: shape, time and whose clock") {
  const MeasurementFile file =
      parsed(kGemm + "A100-SXM4-40GB,fp16,gemm,1,64,128,256,34.5,M1\nA100-SXM4-80GB,bf16,bmm,8,64,128,256,20,M4 CUPTI\n,bf16,gemm_best,1,1,1,1,1,M3\n");
  REQUIRE(file.rows.size() == 2);
  CHECK(file.rows[0].kernel == hw::KernelShape{.kind = hw::KernelKind::gemm, .dtype = hw::Dtype::fp16, .m = 64, .n = 128, .k = 256});
  CHECK(file.rows[0].time.in(microsecond) == doctest::Approx(34.5));
  CHECK(file.rows[0].host_timed);
  CHECK_FALSE(file.rows[1].host_timed);
  CHECK(file.rows[1].kernel.batch == 8);
  CHECK(file.rows[1].line == 3);
  CHECK(file.left_out.at("operation \"gemm_best\" is not one product") == 1);
}

TEST_CASE("Attention: a rate of executed work becomes a time") {
  // forward 4 b h s^2 d = 4 x 2 x 16 x 1024^2 x 64 = 8.59 GFLOP; with the backward 3.5 times that; half of it causal
  const double forward = 4.0 * 2 * 16 * 1024 * 1024 * 64;
  const MeasurementFile file =
      parsed(kAttention + "A100,flash2,fwd+bwd,64,1,1024,2,16,100\nA100,flash2,bwd,64,0,1024,2,16,100\nA100,cudnn,fwd,64,0,1024,2,16,100\n");
  REQUIRE(file.rows.size() == 2);
  CHECK(file.rows[0].both_passes);
  CHECK(file.rows[0].time.si() == doctest::Approx(3.5 * forward / 2 / 100e12));
  CHECK(file.rows[1].kernel.kind == hw::KernelKind::attention_backward);
  CHECK(file.rows[1].time.si() == doctest::Approx(2.5 * forward / 100e12));
  CHECK(file.left_out.size() == 1);
}

TEST_CASE("Memory-bound kernels: PyTorch's own by operation, others by their column class, or left out with the reason") {
  const MeasurementFile file = parsed(kMemory + "A100,ln,torch,fwd,fp32,100,1000,\"mean, torch 2.1\"\nA100,rope,liger,fwd,bf16,100,1000,median\n");
  REQUIRE(file.rows.size() == 1);
  CHECK(file.rows[0].kernel.memory == hw::MemoryClass::normalization);
  CHECK(file.rows[0].kernel.read_bytes == 1000);
  CHECK(file.rows[0].host_timed);
  CHECK(file.left_out.at("no class for \"rope\" of \"liger\"") == 1);
  const MeasurementFile own = parsed("gpu,op,impl,pass,dtype,time_us,ideal_bytes,class,timing\nA100,rope,mine,fwd,bf16,100,1000,indexing,device\n");
  CHECK(own.rows.at(0).kernel.memory == hw::MemoryClass::indexing);
}

TEST_CASE("Copies: inside the device, traffic counted twice; over the bus there is no formula") {
  const MeasurementFile file = parsed("gpu,direction,size_bytes,GBps\nV100,D2D,1000000,500\nV100,H2D,1000000,12\n");
  REQUIRE(file.rows.size() == 1);
  CHECK(file.rows[0].time.si() == doctest::Approx(2e6 / 500e9));
  CHECK(file.left_out.at("no formula for copies between host and device") == 1);
}

TEST_CASE("Collectives as a table") {
  const MeasurementFile file =
      parsed("collective,nodes,gpus_per_node,size_bytes,time_us\nall_gather,2,8,1048576,100\nbroadcast,2,8,1048576,100\nall_gather,,,1048576,100\n");
  REQUIRE(file.rows.size() == 1);
  CHECK(file.rows[0].collective.group == hw::GroupShape{8, 2});
  CHECK(file.left_out.at("the number of ranks isn't given") == 1);
}

TEST_CASE("Cells are strict: line and column are named") {
  const auto refused = [](const std::string& text, const char* message) { CHECK_THROWS_WITH_AS(parsed(text), doctest::Contains(message), InputError); };
  refused(kGemm + "A100,fp16,gemm,1,64,128,256,fast,M1\n", "t.csv: line 2: column time_us: \"fast\" is not a number");
  refused(kGemm + "A100,fp16,gemm,1,64,128,256,-1,M1\n", "not more than 0");
  refused(kGemm + "A100,fp16,gemm,1,6.4,128,256,1,M1\n", "column m: \"6.4\" is not a whole number");
  refused(kGemm + "A100,fp16,gemm,0,64,128,256,1,M1\n", "column batch: 0 is out of range");
  refused(kGemm + "A100,fp17,gemm,1,64,128,256,1,M1\n", "unknown type \"fp17\"");
  refused(kGemm + "A100,fp16,gemm,1,64,128,256,nan,M1\n", "is not a number");
  refused(kAttention + "A100,flash2,sideways,64,0,1024,2,16,100\n", "column pass");
  refused("gpu,op,impl,pass,dtype,time_us,ideal_bytes,class\nA,x,y,fwd,bf16,100,1000,odd\n", "unknown class");
  refused("a,b,c\n1,2,3\n", "is not a kind of measurements that is read");
}
