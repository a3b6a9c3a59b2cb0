"""One file per profile format: bytes to a trace.

`formats/source.py` gives formats plain bytes from a file, a gzip file or standard input. Compression is recognised from
the first bytes, not from the name. Several gzip members follow each other; zeros between and behind them are skipped. A
stream that is cut or broken ends early and says so in `Stream.damage`, which becomes the loss `broken_compression`.
Standard input can be read once; its first bytes are kept for sniffing.
"""
