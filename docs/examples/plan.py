"""Plans a training run with the Python module: which settings fit, which is fastest, and what more nodes bring.

Usage: PYTHONPATH=build/release/python python3 docs/examples/plan.py [MODEL [NODE]]
"""
import sys

import stepcast

model = sys.argv[1] if len(sys.argv) > 1 else "llama-2-7b"
node = sys.argv[2] if len(sys.argv) > 2 else "dgx-a100"

# %% What fits on four nodes, and what is fastest of it?
points = stepcast.sweep(
    model=model,
    cluster=f"{node}-4",
    vary={"/recompute/mode": ["none", "full"], "/batch/micro_batch": [1, 2, 4, 8]},
    set={"/batch/seq_len": 4096},
)
print(f"{model} on 4 x {node}, 4096 tokens")
for point in points:
    report = point["report"]
    setting = ", ".join(f"{pointer.split('/')[-1]} {value}" for pointer, value in point["set"].items())
    print(f"  {setting:32} " + (f"MFU {report['mfu']:6.1%}" if report["outcome"] == "ok" else report["outcome"].replace("_", " ")))

fitting = [point for point in points if point["report"]["outcome"] == "ok"]
if not fitting:
    sys.exit("nothing fits; try more nodes")
best = max(fitting, key=lambda point: point["report"]["mfu"])

# %% What do more nodes bring with the best of them?
print("nodes, tokens/s of the cluster, MFU")
for point in stepcast.sweep(model=model, cluster=f"{node}-1", vary={"/cluster/nodes": "1..16:*2"}, set={"/batch/seq_len": 4096, **best["set"]}):
    report = point["report"]
    if report["outcome"] == "ok":
        print(f"{point['set']['/cluster/nodes']:5} {report['tokens_per_s_per_gpu'] * report['ranks']:12,.0f} {report['mfu']:6.1%}")
