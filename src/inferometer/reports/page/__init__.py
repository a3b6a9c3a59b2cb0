"""One self-contained page about a run, or about two: for a pull request or a colleague.

`look.py` holds what was asked for and the analyses, each made once; `sections/` has one file a section, which turns
analyses into blocks (`blocks.py`); `document.py` renders blocks as HTML, `text.py` as Markdown. `grids.py` and
`figures.py` make tables and charts ready for the page, whose look and behaviour are in `page.css` and `page.js`.
"""
