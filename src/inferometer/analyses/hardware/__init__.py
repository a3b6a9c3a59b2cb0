"""Which devices are there, what can they do, and which of them did a trace run on?

`devices` lists them and describes one, `measured` sets what was measured next to the datasheet, `traced_names`
reads what a file calls its devices.
"""
