"""One self-contained page about a run, or about two: for a pull request or a colleague.

`look.py` holds what was asked for and the analyses, each made once; `sections/` has one file per section, which turns
analyses into blocks (`blocks.py`); `document.py` renders blocks as HTML, `text.py` as Markdown. `grids.py` and
`figures.py` make tables and charts ready for the page, whose look and behaviour are in `page.css` and `page.js`.

`reports/page` makes one page of a run, or of two. `look.py` holds each run with every analysis of it (`RunData`), and
what compares them (`PageData`), each made when a section first asks. Sections about one run stand there for both, and
`scales.py` gives the charts of both the same ranges. `sections/` has one file per section: it turns analyses into
blocks of words, tables and charts (`blocks.py`), down-sampled (`sampling.py`), or says what the trace lacks for it.
Renderers know only blocks:
`document.py` with `page.html.j2`, `page.css` and `page.js` makes HTML that loads nothing from outside, `text.py`
Markdown. Charts are Plotly figures as plain data; `figures.py` makes texts in them harmless and names colours, which
the page resolves for light and dark. `reports/leaderboard` makes the page of the operator catalogue from the same
blocks.
"""
