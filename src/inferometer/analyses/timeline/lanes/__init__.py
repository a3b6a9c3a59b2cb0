"""What ran when, at every scale: lanes of events, and what is too short to be seen, merged into slices.

`find.find_lanes` is the way in: `events.Lanes` has every event of a trace on rows without overlaps (`rows.py`), in
lanes of streams and threads (`sources.py`), with what they are called and what sort they are (`categories.py`), and
the samples of counters (`samples.py`). `levels.Levels` merges what is shorter than 2^k ns into slices of that length,
for any k: count and time are conserved at each. `window.cut_window` is what a picture of some pixels needs of it.
"""
