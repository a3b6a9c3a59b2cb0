"""One self-contained page about a run, or about two: for a pull request or a colleague.

`look.py` holds each run with every analysis of it (`RunData`), and what compares them (`PageData`), each made when a
section first asks. `sections/` has one file per section: it turns analyses into blocks of words, numbers, tables and
charts (`blocks.py`), down-sampled (`sampling.py`), or says what the trace lacks for it. Sections about one run stand
there for both, and `scales.py` gives the charts of both the same ranges.

Renderers know only blocks. `document.py` with `page.html.j2`, `page.css` and the files of `script/` makes HTML that
loads nothing from outside, `text.py` Markdown. `grids.py` and `figures.py` make tables and charts ready for the page.
Charts are figures as plain data in Plotly's words; `script/charts` draws them, `script/flame.js` those that are trees.
They name colours, which the style has for light and dark. `reports/leaderboard` makes the page of the operator
catalogue from the same blocks, `reports/fleet` that of a fleet, whose sums the files of `filters/` add up.
"""
