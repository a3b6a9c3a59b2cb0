"""Is a device idle and why, what is exposed, do streams overlap, which rank lags?

`timeline.find_timeline` is the way in. `work` sorts device work, `exposure` takes unions of it, `gaps` and
`waits` say why a device waits, `queue` how many launches wait for it, `ranks` who keeps the others waiting,
`collectives` what they exchange, `host_activity` what host threads did meanwhile. `budget` is a table whose
rows add up to the window; `strip` draws it, `remarks` puts it in words.
"""
