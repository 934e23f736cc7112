"""The benchmark's driver and its plots as processes, on tiny problems: driver_test.py CENOTE BENCH_PEERS PYTHON.

BENCH_PEERS and PYTHON may not be there; then all peers are absent, which the driver must say.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
CENOTE, PROGRAM, PYTHON = "", "", ""
QUICK = ["--min-time", "0.001", "--rounds", "1"]


def drive(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(SOURCE / "benchmarks/bench.py"), "--cenote", CENOTE, "--peers-program", PROGRAM]
    return subprocess.run([*command, "--python", PYTHON, *arguments], capture_output=True, text=True, check=False)


class JsonOfCenote(unittest.TestCase):
    def test_bench_has_a_record_for_every_row(self) -> None:
        problems = ["max f32 2x3x8x8 k2 s2", "avg f32 2x3x8x8 k3 p1 vjp"]
        done = subprocess.run(
            [CENOTE, "bench", "--json", "--threads", "1", "--min-time", "0.001", *problems],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        told = json.loads(done.stdout)
        self.assertEqual(told["threads"], 1)
        self.assertTrue(told["machine"] and told["simd"] and told["cenote"])
        self.assertEqual([row["problem"] for row in told["results"]], problems)
        for row in told["results"]:
            self.assertGreater(row["best_seconds"], 0)
            self.assertLessEqual(row["best_seconds"], row["median_seconds"])
            rate = row["bytes"] / row["best_seconds"] * 1e-9
            self.assertAlmostEqual(row["gigabytes_per_second"] / rate, 1, 4)
            self.assertAlmostEqual(row["efficiency"] * row["copy_gigabytes_per_second"] / rate, 1, 2)

    def test_plan_tells_the_geometry(self) -> None:
        problem = "max f32 2x3x8x9 k3x2 s2 p1:0x0 d1x3"
        done = subprocess.run([CENOTE, "plan", "--json", problem], capture_output=True, text=True, check=True)
        told = json.loads(done.stdout)
        self.assertEqual(told["shape"], [2, 3, 8, 9])
        self.assertEqual([axis["axis"] for axis in told["axes"]], [2, 3])
        self.assertEqual([axis["dilation"] for axis in told["axes"]], [1, 3])
        self.assertEqual([axis["padding"] for axis in told["axes"]], [[1, 0], [0, 0]])


class Driver(unittest.TestCase):
    def test_wrong_arguments_are_named(self) -> None:
        for arguments, text in [
            ([], "a problem or --list is needed (see bench.py --help)"),
            (["max f32 8x8 k2x2", "--threads", "0"], "--threads 0: from 1 to the "),
            (["max f32 8x8 k2x2", "--threads", "100000"], "--threads 100000: from 1 to the "),
            (["max f32 8x8 k2x2", "--min-time", "0"], "--min-time 0: more than 0"),
            (["max f32 8x8 k2x2", "--rounds", "0"], "--rounds 0: at least 1"),
            (["max f32 8x8 k2x2", "--limit", "-1"], "--limit -1: more than 0"),
            (["max f32 8x8 k2x2", "--peers", "nobody"], "--peers nobody: some of onednn, torch, "),
            (["--list", "none.txt"], "--list none.txt: No such file or directory"),
            (["max f32 8x8 k2x2 q7"], '"q7"'),
            (["max f32 8x8 k9x9"], "[max_pool] "),
        ]:
            done = drive(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertTrue(done.stderr.startswith("bench.py: "), done.stderr)
            self.assertIn(text, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_without_peers_rows_have_efficiencies(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            problems = ["max f32 2x3x8x8 k2 s2", "max f32 2x3x8x8 k2 s2", "avg f32 2x3x8x8 k3"]
            done = drive(*problems, *QUICK, "--peers", "none", "--json", folder + "/made/it.json")
            self.assertEqual(done.returncode, 0, done.stderr)
            told = json.loads(pathlib.Path(folder + "/made/it.json").read_text())
        self.assertEqual([row["problem"] for row in told["results"]], problems[1:])
        for row in told["results"]:
            self.assertAlmostEqual(row["efficiency"], row["copy_seconds"] / row["best_seconds"])
            self.assertGreater(row["share"], 0)
            self.assertIn(row["problem"], done.stdout)

    def test_peers_that_are_not_there_are_notes(self) -> None:
        done = drive("max f32 2x3x8x8 k2 s2", *QUICK, "--peers-program", "nowhere", "--python", "nowhere")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ["onednn", "torch", "jax", "onnxruntime", "scipy", "opencv"]:
            self.assertIn(f"{name} is skipped: ", done.stdout)

    def test_peers_that_are_there_give_the_same_numbers(self) -> None:
        # Sums, so that nothing hangs on NaN; the way back; and a window that slides.
        problems = ["avg f32 2x3x8x8 k2 s2", "avg f32 2x3x8x8 k2 s2 vjp", "max f32 2x3x12x12 k3 p1"]
        with tempfile.TemporaryDirectory() as folder:
            done = drive(*problems, *QUICK, "--json", folder + "/it.json")
            self.assertEqual(done.returncode, 0, done.stderr)
            told = json.loads(pathlib.Path(folder + "/it.json").read_text())
        for row in told["results"]:
            self.assertEqual(set(row["peers"]), set(told["peers"]))
            for name, entry in row["peers"].items():
                self.assertIn(entry["status"], ("same", "absent"), (row["problem"], name, entry))
                self.assertEqual("best_seconds" in entry, entry["status"] == "same", (row["problem"], name, entry))

    def test_rows_of_one_kind_keep_their_own_times(self) -> None:
        # The peer takes as many seconds as the batch is large; the comparison is made once for both rows.
        with tempfile.TemporaryDirectory() as folder:
            fake = pathlib.Path(folder, "fake")
            fake.write_text(
                f"#!{sys.executable}\n"
                "import json, sys\n"
                "if len(sys.argv) == 1: print('onednn 1'); sys.exit()\n"
                "for line in sys.stdin:\n"
                "    if line.startswith('drop'): continue\n"
                "    if line.startswith('check'): print(json.dumps({'status': 'same'}), flush=True); continue\n"
                "    print(json.dumps({'status': 'ready'}))\n"
                "    batch = int(line.split()[4].split('x')[0])\n"
                "    print(json.dumps({'status': 'timed', 'best_seconds': batch}), flush=True)\n"
            )
            fake.chmod(0o755)
            problems = [f"max f32 {n}x3x8x8 k2 s2" for n in (2, 1, 3)]
            options = ["--peers-program", str(fake), "--python", "nowhere", "--json", folder + "/it.json"]
            done = drive(*problems, *QUICK, *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = json.loads(pathlib.Path(folder + "/it.json").read_text())["results"]
        self.assertEqual([row["peers"]["onednn"]["best_seconds"] for row in rows], [2, 1, 3])

    def test_a_peer_is_stopped_at_the_limit(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            slow = pathlib.Path(folder, "slow")
            slow.write_text(
                f"#!{sys.executable}\n"
                "import json, sys, time\n"
                "if len(sys.argv) == 1: print('onednn 1'); sys.exit()\n"
                "for line in sys.stdin:\n"
                "    status = 'same' if line.startswith('check') else 'ready'\n"
                "    print(json.dumps({'status': status}), flush=True)\n"
                "    if line.startswith('time'): time.sleep(100)\n"
            )
            slow.chmod(0o755)
            options = ["--peers-program", str(slow), "--python", "nowhere", "--json", folder + "/it.json"]
            done = drive("max f32 2x3x8x8 k2 s2", *QUICK, "--limit", "0.2", *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            entry = json.loads(pathlib.Path(folder + "/it.json").read_text())["results"][0]["peers"]["onednn"]
        self.assertEqual((entry["status"], entry["least_seconds"]), ("stopped", 0.2))
        self.assertRegex(done.stdout, r"\n *max f32 2x3x8x8 k2 s2 .* >\d+x")

    def test_pictures_and_page_are_made_of_the_results(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.md")
            page.write_text("before\n<!-- measured -->\nold\n<!-- end of measured -->\nafter\n")
            windows = [f"max f32 2x3x600 k{k}" for k in (2, 3, 9, 65, 513)]
            options = ["--peers", "none", "--plots", folder, "--page", str(page)]
            done = drive(*windows, "avg f32 2x3x8x8 k2 s2", *QUICK, *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            for name, text in [("bench-window.svg", "window size k"), ("bench-peers.svg", "avg f32 2x3x8x8 k2 s2")]:
                picture = xml.etree.ElementTree.parse(pathlib.Path(folder, name))
                self.assertIn(text, "".join(picture.getroot().itertext()))
            text = page.read_text()
        self.assertTrue(text.startswith("before\n<!-- measured -->\n"))
        self.assertTrue(text.endswith("<!-- end of measured -->\nafter\n"))
        self.assertIn("| avg f32 2x3x8x8 k2 s2 | ", text)
        self.assertNotIn("old", text)


if __name__ == "__main__":
    CENOTE, PROGRAM, PYTHON = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1])
