"""A trace in, a frozen result out: a folder for each question. Nothing here prints, reads files or draws.

Files at the top are what several questions share: results and their rows (`result`, `rows`, `labels`,
`selection`), intervals of time (`intervals`, `cover`, `nesting`), what ties device work to its host calls
(`correlation`, `named_ranges`), and the thresholds of comparisons. A folder may use those before it in this list:

- `hardware`: which devices are there, what they can do, and which of them the trace ran on;
- `timeline`: is a device idle and why, what is exposed, which rank lags;
- `tables`: how often and how long did kernels, host calls and named ranges run; what is in this file;
- `launched_by`: which op, module or line launched it;
- `groups`: which kernels belong to one library call;
- `steps`: how long are the steps, how do they grow, which are out of line, and what do clients wait for;
- `model`: how far is each part of a model from what model and device allow;
- `compare`: why is this run slower than that one;
- `operators`: what the catalogue's operators could take at best;
- `ab`: one model with several kernel backends, by call path;
- `path_table`: can a printed table of time by call path be right;
- `latencyprism`: the comparison that LatencyPrism publishes, with its own formulas.
"""
