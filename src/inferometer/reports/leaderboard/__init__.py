"""The page about the operator catalogue: one self-contained file, or Markdown.

`page.py` puts the blocks together, of the kinds that `reports/page` renders; each other module makes one of them.
"""
