// What the spans of a timeline and the parts of bars are called, and their colours. Colours are properties of page.css, so that light, dark and print have their own.
import { words } from "./format.js";

const COLOURS = {
  forward: "blue", backward: "indigo", recompute: "cyan", optimizer: "green", other_kernel: "slate", side_kernel: "slate", compute: "blue",
  all_gather: "orange", reduce_scatter: "pink", all_reduce: "violet", communication: "orange", "exposed communication": "orange", comm: "orange",
  copy: "brown", set: "brown", memcpy: "brown", "exposed copies": "brown", other_stream: "slate", idle: "none",
  host_work: "slate", launch_bound: "red", launch_latency: "grey", unexplained: "grey", rate_limiter: "yellow", synchronize: "lime", device_malloc: "brown",
  allocator_flush: "brown", data_loader: "teal", launch_queue: "yellow", host_pause: "violet",
  allocated: "blue", parameters: "indigo", gradients: "pink", activations: "blue", reduction: "violet", loss: "red", input: "teal", workspace: "slate",
  host_allocator_call: "brown", host_sync_on_comm: "lime", host_sync_on_memcpy: "lime", host_sync: "lime", host_memcpy_call: "brown", host_dataloader: "teal",
  host_launch_bound: "red", host_outside_torch_ops: "violet", device_wait_comm: "orange", device_wait_memcpy: "brown", device_wait_other_stream_compute: "slate",
  device_wait_unexplained: "grey", back_to_back_under_10us: "grey", comm_running: "orange", memcpy_running: "brown", other_stream_compute: "slate",
  no_launch_info: "grey", op: "slate", call: "grey", range: "slate",
};
const LABELS = {
  forward: "forward kernels", backward: "backward kernels", recompute: "recomputed kernels", optimizer: "optimizer kernels", other_kernel: "other kernels",
  side_kernel: "kernels of other streams", host_work: "host issues calls", all_gather: "all-gather", reduce_scatter: "reduce-scatter", all_reduce: "all-reduce",
};

const plain = (kind) => kind.replace(/^gap_/, "");
export const colour = (kind) => `var(--${COLOURS[plain(kind)] ?? "slate"})`;
/// A gap is named by its cause, whatever else has that name.
export function label(kind) {
  if (kind.startsWith("gap_")) return `idle: ${words(kind)}`;
  return LABELS[kind] ?? words(kind);
}
