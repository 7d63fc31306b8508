"""The Python module against the rules that docs/python.md gives. Run by ctest with the built module on PYTHONPATH."""
import json
import pathlib
import tempfile
import threading
import unittest

import stepcast

SMALL = {
    "model": {"layers": 4},
    "cluster": {"nodes": 2, "gpus_per_node": 4},
    "batch": {"micro_batch": 1, "seq_len": 100},
    "run": {"steps": 4},
    "fixed_costs": {"block_forward": "10 ms", "block_backward": "20 ms", "optimizer": "5 ms"},
}


class Run(unittest.TestCase):
    def test_a_dict_is_a_scenario(self):
        # 4 blocks of 10 + 20 ms and an optimizer of 5 ms; nothing else costs anything.
        self.assertAlmostEqual(stepcast.run(SMALL)["step_time_s"], 4 * 0.030 + 0.005, places=9)

    def test_settings_change_it(self):
        longer = stepcast.run(SMALL, set={"/fixed_costs/optimizer": "15 ms"})
        self.assertAlmostEqual(longer["step_time_s"] - stepcast.run(SMALL)["step_time_s"], 0.010, places=9)

    def test_a_name_and_a_model_are_scenarios(self):
        by_name = stepcast.run("7b-32xa100", explain=True)
        self.assertGreater(by_name["mfu"], 0.2)
        self.assertIn("explain", by_name)
        by_model = stepcast.run(model="llama-2-7b", cluster="dgx-a100-4")
        self.assertEqual(by_model["outcome"], "ok")

    def test_out_of_memory_is_a_result(self):
        self.assertEqual(stepcast.run("7b-32xa100", set={"/batch/micro_batch": 64})["outcome"], "out_of_memory")

    def test_a_mistake_is_an_error_with_its_place(self):
        with self.assertRaises(stepcast.InputError) as caught:
            stepcast.run(SMALL, set={"/batch/micro_batch": 0})
        self.assertIn("/batch/micro_batch", str(caught.exception))
        self.assertIsInstance(caught.exception, ValueError)
        for bad in ({}, {"model": {"layers": float("nan")}}, "no-such-scenario"):
            with self.assertRaises(ValueError):
                stepcast.run(bad)
        with self.assertRaises(TypeError):
            stepcast.run()
        with self.assertRaises(TypeError):
            stepcast.run("7b-32xa100", model="llama-2-7b")

    def test_threads_forecast_at_the_same_time(self):
        times = []
        threads = [threading.Thread(target=lambda: times.append(stepcast.run(SMALL)["step_time_s"])) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(set(times)), 1)
        self.assertEqual(len(times), 4)


class Sweep(unittest.TestCase):
    def test_the_last_setting_varies_fastest(self):
        points = stepcast.sweep(SMALL, vary={"/model/layers": [2, 4], "/fixed_costs/optimizer": ["5 ms", "15 ms"]})
        self.assertEqual([p["set"] for p in points][1], {"/model/layers": 2, "/fixed_costs/optimizer": "15 ms"})
        times = [p["report"]["step_time_s"] for p in points]
        for measured, expected in zip(times, [0.065, 0.075, 0.125, 0.135]):
            self.assertAlmostEqual(measured, expected, places=9)

    def test_ranges(self):
        points = stepcast.sweep("7b-32xa100", vary={"/cluster/nodes": "1..4:*2"})
        self.assertEqual([p["set"]["/cluster/nodes"] for p in points], [1, 2, 4])


class Diagnose(unittest.TestCase):
    def test_a_trace_is_taken_apart(self):
        kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 100, "dur": 50, "pid": 0, "tid": 7, "args": {"stream": 7, "device": 0}}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rank0.json"
            path.write_text(json.dumps({"traceEvents": [kernel, dict(kernel, ts=200)]}))
            diagnosis = stepcast.diagnose(path)
            self.assertEqual(len(diagnosis["ranks"]), 1)
            self.assertIn("findings", diagnosis)
            with self.assertRaises(stepcast.InputError):
                stepcast.diagnose(pathlib.Path(folder) / "absent.json")
        with self.assertRaises(TypeError):
            stepcast.diagnose()


if __name__ == "__main__":
    unittest.main()
