// A page's data with foreign texts that try to be markup, for tests of the drawing that need no program.
export const HOSTILE = `</script><img src=x onerror="document.title='broken'">{{evil}}`;

const lane = (name, items) => ({ name, items });

function timeline() {
  const compute = [], gather = [], gaps = [], host = [];
  for (let block = 0; block < 64; ++block) {
    const begin = block * 100e6, kind = block < 22 ? 0 : 1;
    for (let kernel = 0; kernel < 8; ++kernel) compute.push([begin + kernel * 11e6, 10.5e6, kind, kernel === 3 ? 1 : 0, 3, 9.5e6]);
    gaps.push([begin + 88e6, 12e6, 4 + (block % 3), 2, 1, 12e6]);
    gather.push([begin + 20e6, 60e6, 2, 3, 1, 60e6]);
    host.push([begin / 3, 30e6, 3, 0, 40, 22e6]);
  }
  return {
    kind: "timeline", title: "Timeline of the last step", text: "The compute stream is idle for 768 ms.", length_ns: 6400e6,
    kinds: ["forward", "backward", "all_gather", "host_work", "gap_all_gather", "gap_launch_bound", "gap_data_loader"],
    names: ["gemm", HOSTILE, "before gemm", "all_gather block"],
    lanes: [lane("host", host), lane("compute", compute), lane("why idle", gaps), lane("all_gather", gather)],
  };
}

function memory() {
  const time_ns = [...Array(200).keys()].map((i) => i * 60e6);
  const wave = (i) => Math.abs(((i % 50) - 25) / 25);
  return {
    kind: "memory", title: "Device memory through the run", text: "At most 52 GiB are allocated.", time_ns,
    reserved: time_ns.map((_, i) => (i < 12 ? 40 : 55) * 2 ** 30), limit_bytes: 76 * 2 ** 30, device_bytes: 79 * 2 ** 30,
    owners: [
      { name: "parameters", bytes: time_ns.map(() => 3 * 2 ** 30) },
      { name: "optimizer", bytes: time_ns.map((_, i) => (i < 40 ? 0 : 2 * 2 ** 30)) },
      { name: "activations", bytes: time_ns.map((_, i) => (1 - wave(i)) * 44 * 2 ** 30) },
    ],
    steps: [0, 1, 2, 3].map((step) => ({ step, begin_ns: step * 3000e6 })),
  };
}

const kernels = (scale, batch) => [
  { kernels: "products, bf16", count: 10, flops: 4e15 * batch, bytes: 4e12 * scale, flops_per_byte: 1000 * batch / scale, time_s: 20 * batch, flops_per_s: 2e14, bytes_per_s: 2e11 * scale / batch, peak_flops_per_s: 3.12e14, peak_bytes_per_s: 2e12, ridge_flops_per_byte: 156, bound: "compute", attained: 0.64 },
  { kernels: HOSTILE, count: 10, flops: 1e13 * batch, bytes: 1e11 * batch, flops_per_byte: 100, time_s: 0.1 * batch, flops_per_s: 1e14, bytes_per_s: 1e12, peak_flops_per_s: 3.12e14, peak_bytes_per_s: 2e12, ridge_flops_per_byte: 156, bound: "memory", attained: 0.5 },
];
const copies = { kernels: "elementwise", count: 90, flops: 0, bytes: 1e12, flops_per_byte: 0, time_s: 0.7, flops_per_s: 0, bytes_per_s: 1.4e12, peak_flops_per_s: 0, peak_bytes_per_s: 2e12, ridge_flops_per_byte: 0, bound: "memory", attained: 0.7 };
const scaled = (nodes, efficiency) => ({
  nodes, gpus: 8 * nodes, outcome: "ok", step_time_s: 2 / efficiency, tokens_per_s_per_gpu: 4000 * efficiency, mfu: 0.5 * efficiency, comm_s: 1, exposed_comm_s: 0.1 * nodes, efficiency, peak_reserved_bytes: 2 ** 36, bound: "compute",
});
const failed = (nodes, outcome) => ({ nodes, gpus: null, outcome, step_time_s: null, tokens_per_s_per_gpu: null, mfu: null, comm_s: null, exposed_comm_s: null, efficiency: null, peak_reserved_bytes: null, bound: null });

/// A run that was asked more than its forecast.
export const asked = (sample) => ({
  ...sample,
  sections: [
    {
      kind: "interval", title: "How sure the step time is", text: "80 % of 100 forecasts lie between 1.9 and 2.3 s.", step_time_s: 2, p10_s: 1.9, p50_s: 2.05, p90_s: 2.3,
      causes: [{ cause: "network_efficiency", step_time_s: 1.8 }, { cause: HOSTILE, step_time_s: 2.1 }],
    },
    {
      kind: "roofline", title: "Roofline", text: "Products attain 64 % of what the device's peak allows.", micro_batch: 2, kernels: [...kernels(1.5, 2), copies],
      micro_batches: [1, 2, 4].map((batch) => ({ micro_batch: batch, kernels: kernels(1 + batch / 4, batch) })),
    },
    { kind: "scaling", title: "By number of nodes", text: "From 1 to 8 nodes.", rows: [failed(1, "out_of_memory"), scaled(2, 1), scaled(4, 0.9), scaled(8, 0.7), failed(3, `refused: ${HOSTILE}`)] },
  ],
});

export const sample = {
  schema: "stepcast.page/1", command: "run", version: "0.0.0", title: HOSTILE, headline: `llama-2-7b on 32 x A100 ${HOSTILE}`,
  tiles: [
    { label: "step time", value: "6.701 s", note: "" }, { label: "MFU", value: "73.5 %", note: "6P only: 64.1 %" }, { label: "HFU", value: "73.5 %", note: "recomputation counted" },
    { label: "tokens/s/GPU", value: "4,890", note: "32 GPUs" }, { label: "peak reserved", value: "73.82 GiB", note: "of 76.10 GiB" },
    { label: "exposed communication", value: "18.33 ms", note: "99.1 % hidden" }, { label: "bound by", value: "compute", note: "" },
  ],
  notices: [`a warning with ${HOSTILE}`],
  sections: [
    {
      kind: "progression", title: "MFU by stage", text: "From 01-baseline to 09-all-adapters: MFU 31.0 % to 73.5 %.",
      stages: ["01-baseline", "02-prefetch", "03-larger", "04-loader", "05-allocator", "06-fusion", HOSTILE].map((name, i) => ({
        name, why: `why ${name}`, outcome: i === 2 ? "out_of_memory" : "ok", bound: "compute", mfu: i === 2 ? null : 0.3 + 0.06 * i, step_time_s: i === 2 ? null : 9 - i, tokens_per_s_per_gpu: i === 2 ? null : 2000 + 300 * i,
      })),
    },
    {
      kind: "waterfall", title: "From the peak to the MFU", text: "Of a step of 6.701 s, model FLOPs at the device's peak would take 4.924 s.", step_time_s: 10, ideal_s: 5, mfu: 0.5,
      losses: [
        { loss: "masked pairs of attention, counted but not computed", seconds: -0.25 }, { loss: "tile quantisation of products", seconds: 0.5 }, { loss: "products below peak", seconds: 2 },
        { loss: "memory-bound kernels", seconds: 1.25 }, { loss: "exposed all-gather", seconds: 0.5 }, { loss: "launch gaps: the host is late", seconds: 1 },
      ],
    },
    timeline(),
    {
      kind: "parts", title: "Phases", text: "What the phases spend.", unit: "s",
      rows: ["forward", "backward", "optimizer"].map((name, i) => ({ name, parts: { compute: 2 + i, "exposed communication": 0.2, idle: 0.1 * i } })),
    },
    memory(),
    { kind: "bars", title: "Longest kernels", text: "The kernels that take most of the step.", unit: "s", bars: ["gemm", "flash", HOSTILE].map((name, i) => ({ name, value: 3 - i, note: "64 times" })) },
    { kind: "table", title: "Collectives", text: "Per step and rank.", columns: ["kind", "calls", "bytes"], rows: [["all_gather", "65", "12.5 GiB"], [HOSTILE, "1", "1 B"]] },
    { kind: "folded_table", title: "Constants and their sources", text: "60 measured.", columns: ["constant", "value", "kind"], rows: [...Array(80).keys()].map((i) => [`constant_${i}`, `${i}`, "measured"]) },
  ],
};

/// Three axes of 3 x 2 x 2 values; point 5 runs out of memory, point 7 is refused.
function grid() {
  const outcomes = [...Array(12).keys()].map((i) => (i === 5 ? "out_of_memory" : i === 7 ? "refused" : "ok"));
  const values = (of) => outcomes.map((outcome, i) => (outcome === "ok" ? of(i) : null));
  return {
    kind: "grid", title: "What was varied", text: "The fastest: micro_batch=4.",
    axes: [{ pointer: "/batch/micro_batch", values: ["1", "2", "4"] }, { pointer: "/recompute/mode", values: ["none", HOSTILE] }, { pointer: "/policy/forward_prefetch", values: ["false", "true"] }],
    outcomes, bounds: outcomes.map(() => "compute"), missing_bytes: outcomes.map((outcome) => (outcome === "out_of_memory" ? 5 * 2 ** 30 : null)),
    metrics: [
      { name: "MFU", unit: "share", high_is_good: true, values: values((i) => 0.3 + 0.03 * i) },
      { name: "step time", unit: "s", high_is_good: false, values: values((i) => 9 - 0.5 * i) },
    ],
  };
}

const line = { ...grid(), title: "One axis", axes: [{ pointer: "/cluster/nodes", values: ["1", "2", "4", "8", "16", "32", "64", "128", "256", "512", "1024", "2048"] }] };

export const planned = {
  ...sample, command: "sweep",
  sections: [
    grid(),
    line,
    {
      kind: "pareto", title: "Memory headroom against step time", text: "3 of 40 points are beaten by none in both.", label: "step time",
      points: [...Array(40).keys()].map((i) => ({ time_s: 5 + 0.1 * i, headroom_bytes: ((i * 7) % 40) * 2 ** 30, words: i === 3 ? HOSTILE : `point ${i}`, front: i % 6 === 5 })),
    },
    {
      kind: "decisions", title: "From the scenario to the best", text: "Each time the change that gains most.",
      decisions: [
        { question: "Does it fit?", answer: "No, 5 GiB are missing.", change: "recompute every second block", outcome: "ok", step_time_s: 8, mfu: 0.5, gain: 0 },
        { question: "What does it wait for?", answer: HOSTILE, change: "compiled kernels", outcome: "ok", step_time_s: 7, mfu: 0.57, gain: 0.125 },
      ],
    },
    {
      kind: "findings", title: "Findings", text: "Largest share of the time first.",
      findings: [
        { finding: "starved_data_loader", where: "rank 0", confidence: 0.9, share_of_step: 0.21, evidence: ["21 gaps", HOSTILE], advice: "more workers", upper_bound_gain: 0.21, forecast_gain: 0.18 },
        { finding: "launch_bound", where: HOSTILE, confidence: 0.5, share_of_step: 0.1, evidence: [], advice: "compile", upper_bound_gain: null, forecast_gain: null },
      ],
    },
    {
      kind: "table", title: "The scenario behind this trace", text: "23 keys are seen in the file, 0 given, 2 guessed, 0 missing.", columns: ["key", "value", "how sure", "because"],
      rows: [["/cluster/nodes", "4", "guessed", HOSTILE], ...[...Array(24).keys()].map((i) => [`/model/key_${i}`, `${i}`, "seen", "a side of every linear layer's weight, ".repeat(1 + (i % 4))])],
    },
    {
      kind: "bars", title: "FLOP/s of matrix products and attention", text: "211.4 TFLOP/s over all of them.", unit: "FLOP/s",
      bars: [{ name: `aten::mm [[4096, 4096], [4096, 11008]] ${HOSTILE}`, value: 250e12, note: "64 calls" }, { name: "aten::bmm [[8, 4, 5], [8, 5, 6]]", value: 3e9, note: "2 calls" }],
    },
    { kind: "code", title: "Settings to paste", text: "In each framework's own words.", blocks: [{ name: "fsdp1", text: `import torch  # ${HOSTILE}\n` }, { name: "environment", text: "export X=1\n" }] },
  ],
};

/// 30 rows of 15 sources on two GPUs; the first has an interval, the last does not fit.
const point = (i) => ({
  name: i === 4 ? HOSTILE : `row-${i}`, run: `model on ${8 * (1 + (i % 3))} x A100`, source: i % 15 === 3 ? HOSTILE : `source ${i % 15}`, gpu: i % 2 === 0 ? "a100-80gb" : "h100", tier: "A",
  measured: 1000 * (i + 1), forecast: 1000 * (i + 1) * (1 + 0.01 * (i - 10)), fits: i !== 29, ...(i === 0 ? { low: 800, high: 1300 } : {}),
});
const points = [...Array(30).keys()].map(point);

export const judged = {
  ...sample, command: "validate",
  sections: [
    {
      kind: "scatter", title: "Forecast against measurement", text: "On the line a forecast is exact.", quantity: "tokens/s/GPU", unit: "",
      filters: { source: [...new Set(points.map(({ source }) => source))].sort(), gpu: ["a100-80gb", "h100"], tier: ["A"] }, points,
    },
    {
      kind: "scatter", title: "Peak memory", text: "Above the line the forecast is too large.", quantity: "peak memory", unit: "B", filters: { source: ["lab"], gpu: ["h100"], tier: ["A"] },
      points: [1, 2].map((i) => ({ name: `m${i}`, run: "model", source: "lab", gpu: "h100", tier: "A", measured: i * 20 * 2 ** 30, forecast: i * 21 * 2 ** 30, fits: true })),
    },
    { kind: "table", title: "Worst rows", text: "The largest errors.", columns: ["row", "error"], rows: [[HOSTILE, "+19.0 %"], ["row-28", "+18.0 %"]] },
  ],
};
