"""tools/fit-kernels gets back the numbers that a made-up table was made with."""

import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "fit-kernels"
PEAK, BANDWIDTH = 100e12, 1e12


def fit(kind, header, rows):
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "table.csv"
        table.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
        command = [sys.executable, TOOL, kind, table, "--system", "x", "--dtype", "bfloat16",
                   "--peak", str(PEAK), "--bandwidth", str(BANDWIDTH)]
        return subprocess.run(command, capture_output=True, text=True, check=False)


def milliseconds(flops, size, overhead, compute, memory):
    return 1e3 * (overhead + max(flops / (compute * PEAK), size / (memory * BANDWIDTH)))


class FitKernels(unittest.TestCase):
    def test_gemm(self):
        rows = []
        for m in (256, 1024, 4096):
            for n in (512, 1024, 4096):
                for k in (512, 2048, 8192):
                    time = milliseconds(2 * m * n * k, 2 * (m * k + k * n + m * n), 7e-6, 0.73, 0.58)
                    rows.append(f"x,bfloat16,{m},{n},{k},{time!r}")
        # Neither another machine nor fewer rows than training has may pull the fit.
        rows += ["y,bfloat16,512,512,512,99", "x,fp8,512,512,512,99", "x,bfloat16,64,512,512,99"]
        done = fit("gemm", "system,dtype,m,n,k,latency_ms", rows)
        self.assertEqual(done.stdout.split("  #")[0], "overhead: 7us, compute: 0.73, memory: 0.58")
        self.assertIn("27 rows, error median 0.0 %, p90 0.0 %", done.stdout)

    def test_attention_with_outliers(self):
        rows = []
        for s in (1024, 2048, 8192):
            for heads in (8, 16, 64):
                for kv_heads in (1, 8):
                    for d in (64, 128):
                        flops = 2 * 4 * heads * s * (s + 1) * d
                        size = 2 * 4 * s * (2 * heads + 2 * kv_heads) * d
                        time = milliseconds(flops, size, 40e-6, 0.45, 0.04)
                        rows.append(f"x,bfloat16,bfloat16,4,{s},{heads},{kv_heads},{d},0,{time!r}")
        # One row in twelve is ten times too slow: an L1 fit does not follow it.
        rows[::12] = [row.rsplit(",", 1)[0] + f",{10 * float(row.rsplit(',', 1)[1])!r}" for row in rows[::12]]
        random.Random(1).shuffle(rows)
        done = fit("attention", "system,attn_dtype,kv_dtype,batch,isl,heads,kv_heads,head_dim,window,latency_ms", rows)
        self.assertEqual(done.stdout.split("  #")[0], "overhead: 40us, compute: 0.45, memory: 0.04")

    def test_too_few_rows(self):
        done = fit("gemm", "system,dtype,m,n,k,latency_ms", ["x,bfloat16,512,512,512,1"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 rows of x bfloat16", done.stderr)


if __name__ == "__main__":
    unittest.main()
