"""Our own WebGPU engine: a model as one program of WGSL kernels, which wgpu, a browser or NumPy executes.

`program` says what a program is, `run.executor` who can run one; `plan` makes one of a model and a kernel path,
`run.local_runner` runs it token by token. What runs is the same everywhere: kernels, buffers and dispatches.

`engines/webgpu` runs a model as one *program* (`program.py`): kernels with their constants, buffers, and a list of
dispatches for prefill, decode and head. It is plain data. What changes from token to token, the position and the rows
of a pass, is in a buffer that kernels read and the last dispatch of a step moves on; grids, bytes and FLOPs are
formulas over the two numbers. So the list of a decode step is the same for every token, several steps go to the
device in one submit, and each finds the token that the one before it sampled.

     config.json, safetensors    weights                      kernel_paths/*.toml    backends/wgsl/*.wgsl
                            │                                          │                  │
                            └────────────▶    plan    ◀────────────────┴──────────────────┘
                                               │  Program + Contents (read when a buffer is filled)
                     ┌─────────────────────────┼────────────────────────┐
          run/numpy_executor         run/wgpu_executor              browser/  (the same loop, in the page)
                     └── run/local_runner ─────┘                        │
                                 │ Submissions: host split, device times, tokens
                                 ▼                                      ▼
                      chat                         profile                            tune

- `load.py` makes a model ready (`engine.py`): opens its checkpoint and a runner (`runners.py`), gives its cache a size
  (`capacity.py`), has kernels chosen (`tune/choices.py`), plans a program and loads it.
- `backends/wgsl` has one file per kernel. Its bindings, constants, needed features and NumPy counterpart
  (`numpy_kernels`) are read from the file itself (`source.py`), so nothing is declared twice; `enable` lines are put
  in front for the compiler that wants them.
- `backends/wgsl/weight_formats.py` says how matrices lie on the device: float16, float32, or codes of 4 to 8 bits with
  scales. The format is each matrix's own, and so a constant of each dispatch. GGUF's blocks are taken apart by
  `engines/gguf/block_codes.py` and packed as such rows without a change of any weight. `cache_formats.py`
  says how keys and values lie there: float16 or float32.
- `plan/kernel_path.py` is a plan: steps, and for each the kernels that may run it; `plan/path_files.py` reads it.
  `plan/selection.py` takes one for the adapter and says why; `plan/layout.py` gives places and cuts what is larger than
  a binding may be; `plan/dispatches.py` makes the launches, `plan/matrix_grids.py` their grids.
  `plan/difference.py` holds what ran against the plan.
- Which experts a token passes is decided on the device (`moe_route`), so the list of dispatches is the same for every
  token: kernels of experts read the numbers that it left, and `plan/layout.py` cuts their matrices between experts.
- An `Executor` runs one submit; a `Runner` a whole answer. `browser/session.py` is a runner whose loop is in the page
  (`page/engine.js`): its times hold no round trip. Weights are served by ranges of a file that exists only as
  contents, and kept in OPFS under a fingerprint.
- `run/wgpu_executor.py` records through wgpu's native calls (`run/native_calls.py`), a few microseconds per dispatch;
  errors that arrive later are raised where they matter (`run/device_errors.py`). `run/driver_order.py` loads Triton's
  LLVM before a driver's, which would end the process otherwise.
- `profile/profiled_run.py` defines each metric once. The store has launches, totals, steps, spans, selections, log
  and metrics under the names that the log reader gives them, so every analysis of engines' logs holds for it; the log
  (`profile/engine_log.py`) reads back to the same numbers.
- `tune/tuner.py` measures candidates inside layers of the model itself, several in one program (`plan/joined.py`),
  and whole steps in the separate and the fused form; only what was faster beyond its spread replaces the path's first
  choice. `tune/tuned_file.py` keeps it by adapter, shape and text of the kernels. `run/adapter_rates.py` measures
  what memory moves a second and what an empty pass takes.
"""
