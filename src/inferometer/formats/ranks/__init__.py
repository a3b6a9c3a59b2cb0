"""A folder with one profile per rank: not a format, but files of any format that open as one trace.

Modules: `listing` finds the profiles in the folder, `numbering` finds whose each is, `skew` estimates how far their
clocks are apart, `files` reads each of them, `reading` makes one trace of all.

`formats/ranks` lists the profiles in a folder (`listing.py`), finds each one's rank in the file, in its name or in
its place (`numbering.py`), opens them with their share of the memory budget (`files.py`: several at the same time where
threads of the library in C++ decode them, which all files share), and hands them to `trace/combine.py`: rows of all,
each with its rank, times moved to the earliest clock base, and numbers that a file gives to its own things (call paths,
frames, sections) going on where the file before ended. `skew.py` estimates what is left between the clocks from
collectives that all ranks leave together; it is noted in `facts.rank_files` and never applied. A file that can't be
read is a loss; two recordings of one rank are refused.
"""
