"""The trace: what every format is read into and every analysis starts from.

A `Trace` is three things:

- facts: what the file says of itself (tool, devices, ranks, processes and threads, the clock's base, versions).
  Absent is absent, never guessed.
- tables: Polars LazyFrames with exactly the declared columns. A table that the source can't fill is there and empty.
  One that was not asked for raises, since an empty answer would be a wrong one.
- losses: what could not be read or was mended, by name, severity and category, with the scope (the tables that were
  read).

Every reader is asked for the set of tables that the question needs, and reads no more where that saves time. A
question may name columns, too: a reader that gains by it calls `TraceBuilder.narrow`, and the trace then has these
columns only, so that touching another is an error and never a column of nulls.

Text that repeats from row to row (a kernel's name) may be kept as categories. `trace.tables` shows it as text;
`trace.compact` gives it as it is, and groups over millions of names are then far quicker and smaller.

Correlation ids are unique in one process only, and process ids on one machine only: launches join calls by rank,
process and correlation id, where an unknown rank or process is a value of its own (`analyses/correlation.py`).

A reader fills a `TraceBuilder` with batches of columns; no Python object is kept for an event. The builder merges
small batches as they come. What exceeds its memory budget (512 MiB) is written as Parquet parts to a temporary folder
that the trace owns and drops when it is closed. When a store is being made, parts go into the store as they fill, and
the finished parts *are* the store: so a trace of any size is imported in bounded memory.

Values that a column's type can't hold become null and are counted. `fill` sets nulls afterwards: some facts (the
rank) stand behind the events in the file.

A folder `NAME.ifm` with `facts.json` (schema version, facts, losses, and rows, files and checksums of each table) and
Parquet files, several for a large table. Opening it reads `facts.json`, and checks the schema and the CRC-32 of the
files of the tables asked for (about 5 GB/s): flipped bits are an error, never numbers. A question then reads its
columns.

- It is written to a hidden folder next to its place and moved there when it is whole.
- The schema has a major and a minor version. A newer major version is refused with a message. Columns that an older
  store lacks are null, columns that this version doesn't know are passed over.
- Refused: a `facts.json` that isn't a store's, a file name that is not a plain `table-00000.parquet` (so no path
  leads out of the folder), a symbolic link, a missing file, headers of pages that can't be true, a column of another
  type.
- `--force` replaces stores only, never another file or folder.
"""
