"""The noise of the synthetic runs, and where its levels come from.

Measured by `python -m tests.faults.noise_of_real_runs` on the two published pairs (SGLang, vLLM; four runs of 9 s,
14 to 238 cycles and 8 or 9 ticks each). Spread: 1.4826 x MAD / median of one call's time over whole cycles.

| what | measured | assumed |
| --- | --- | --- |
| gpu_compute, one call | 0.3 to 0.9 %; 0 to 31 % of cycles beyond 5 spreads | 0.6 %, 10 % of cycles 6 x wider |
| copies, one call | 0.2 to 5 % | 1 %, 10 % of cycles 6 x wider |
| oncpu, one call | 2.4 to 5.1 % | 3.5 % |
| run queue, one call | 3.5 to 6.3 % | 5.5 % |
| read and write, one call | 7 to 10 % | 8 % |
| synchronisation, one call | 3 to 8 % (68 % while the GPU is slow) | 8 % |
| kernels that depend on the data (index, top-k) | sd of 81 to 104 % of the mean | 80 % |
| length of a step | 1.0 and 2.4 % | 1.5 %, autocorrelation 0.3 |
| drift of GPU calls between runs (CPU-clock pair) | quartiles -0.2 to +1.7 %, extremes -3.3 and +8.4 % | sd 1 % |
| drift of host calls between runs (GPU-clock pair) | +1.8 % oncpu, +2.5 % write, -0.7 % run queue, +34 % one tiny read | sd 2 % |
| cpu_frequency, cores at one time | 3500 with sd 3.5 to 68 MHz; medians of ticks within 0.1; single cores down to 2664 | Laplace of 3 MHz, a tenth of the ticks with 5 % of the cores up to 800 lower |
| host_cpu_usage | sd 0.38 to 0.98 points a tick; between runs 5.5 -> 7.3 and 10.6 -> 10.4 | sd 0.7, autocorrelation 0.3 (measured -0.3 to 0.3); between runs sd 0.5, with tenants sd 1.5 |
| process_cpu_usage | sd 0.3 to 1.2 points, a trend within the run (lag 1: 0.98 to 1.0); between runs 170 -> 182 | sd 1, autocorrelation 0.9, between runs sd 3 % |
| gpu clocks | 1155 and 1410 in turn while the load is small, 210 when idle | small load: 1155 in 30 to 70 % of ticks |
| own gpu_usage | whole percents, sd 0.4 to 1 | whole percents, sd 0.8 |
| gpu_pcie_transmit, own GPU | from 1.7 to 14 and 3.6 to 18 MB/s within one run | lognormal, sd 0.7; idle GPUs 0.2 |
| host_mem_usage | sd 0.005 to 0.037 points; between runs +0.02 and -0.54 | sd 0.02; between runs sd 0.1, with tenants sd 0.6 |
| net_rx_rate, net_tx_rate | MAD 0.3 to 1.2 of the median, maxima 20 x; medians between runs 0.1 to 2.9 x | lognormal, sd 1.0; between runs lognormal, sd 0.6, with tenants 1.0 |
| temperature, power, disk rates, PCIe receive | not in the published recordings | temperature sd 0.7 degrees, between runs sd 1.5; power 4 %; disk lognormal, sd 0.8 |

Outlying cycles (3 %, 1.3 to 2.5 x as long) stand for pauses of the Python collector and page faults; they are assumed.
"""  # noqa: E501 - a table row is one line

from typing import Any

import numpy as np

SPREAD = {
    "gpu_compute": 0.006,
    "gpu_comm": 0.02,
    "gpu_memcpy_h2d": 0.01,
    "gpu_memcpy_d2h": 0.01,
    "gpu_memcpy_d2d": 0.01,
    "oncpu": 0.035,
    "runq": 0.055,
    "disk_read_and_write": 0.08,
    "cpu_sync": 0.08,
    "cpu_os_syscall_mem": 0.08,
}
FAR_SHARE = 0.1
FAR_WIDTH = 6.0
WIDEST = 0.3
STEP_SPREAD = 0.015
STEP_LAG = 0.3
OUTLIER_SHARE = 0.03
DRIFT_GPU = 0.01
DRIFT_HOST = 0.02

Floats = np.ndarray[Any, np.dtype[np.float64]]


def autocorrelated(rng: np.random.Generator, n: int, sd: float, lag: float) -> Floats:
    """`n` values of a stationary AR(1) process with mean 0, standard deviation `sd` and lag-1 correlation `lag`."""
    shocks = rng.normal(0.0, sd * np.sqrt(1 - lag**2), n)
    values = np.empty(n)
    last = rng.normal(0.0, sd)
    for i, shock in enumerate(shocks):
        last = lag * last + shock
        values[i] = last
    return values


def call_noise(rng: np.random.Generator, n: int, spread: float) -> Floats:
    """Factors around 1: lognormal, with `FAR_SHARE` of them `FAR_WIDTH` times as wide."""
    width = np.minimum(np.where(rng.random(n) < FAR_SHARE, FAR_WIDTH, 1.0) * spread, max(spread, WIDEST))
    return np.exp(np.clip(rng.normal(0.0, 1.0, n), -3, 3) * width)


def step_noise(rng: np.random.Generator, n: int) -> Floats:
    """Factors of whole steps: autocorrelated, with a few outliers to the long side."""
    factors = np.exp(autocorrelated(rng, n, STEP_SPREAD, STEP_LAG))
    return np.where(rng.random(n) < OUTLIER_SHARE, factors * rng.uniform(1.3, 2.5, n), factors)


def drift(rng: np.random.Generator, sd: float) -> float:
    """A factor that holds for one run."""
    return float(np.exp(np.clip(rng.normal(0.0, 1.0), -3, 3) * sd))
