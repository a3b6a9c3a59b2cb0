"""Is a device idle and why, what is exposed, do streams overlap, which rank lags?

`timeline.find_timeline` is the way in. `work` sorts device work, `exposure` takes unions of it, `gaps` and
`waits` say why a device waits, `recorder_pauses` when a recording of ours stood in the way, `queue` how many
launches wait for it, `ranks` who keeps the others waiting, `collectives` what they exchange, `host_activity` what
host threads did meanwhile. `budget` is a table whose rows add up to the window; `strip` draws it, `remarks` puts it
in words. `lanes` has every event of a trace, and slices of what is too short to be seen.

`analyses/timeline/work.py` sorts device work into compute, communication and copies; `collectives.py` says what is
known of each launch that communicates (which collective, bytes, type, group); `exposure.py` takes unions of each and
what runs alone, so that compute + exposed communication + exposed copies + idle = window. `gaps.py` gives every idle
gap a cause from the call that queued what ended it; where a host waited, then computed, and the work then waited in
turn, the gap is parted, each with its own time. `waits.py` says which calls wait for the device, by their names or
proven by their times. `ranks.py` finds who keeps others waiting from the durations of matching collectives, which
needs no common clock. `queue.py` follows the number of launches called for and not begun, exactly.
`analyses/nesting.py` finds the innermost range around each call with one sort and one sweep a thread.
"""
