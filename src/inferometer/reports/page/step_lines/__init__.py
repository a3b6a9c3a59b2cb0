"""Steps of two runs on one time axis: the data in the page (`data.py`), and what draws it (`viewer.js` and others)."""
