"""The time line of the page: packed columns, and a viewer that draws them.

`pack.py` writes an excerpt of a time line as bytes and documents their layout. `fit.py` chooses what of it has room in
a page. `markup.py` is what is in the page; `script.py` puts the viewer's files together: `columns.js` unpacks,
`levels.js` merges what is too short to be seen, `source.js` answers what the viewer asks, `view.js` is the window of
time, `layout.js` the lanes in sight, `paint.js` draws, `input.js` takes keys, wheel and pointers, `search.js`,
`selection.js`, `details.js` and `viewer.js` are the rest. A server's answer is `pack` of `cut_window`: another source.

Why our own: Perfetto's page would be loaded from another origin, which a page that loads nothing can't; uPlot draws
series, not events; WebGL runs in software on a machine without a GPU, where a buffer of pixels in memory is quicker.
"""
