"""Operators that the layers of a decoder and its sampling call, one contract each."""
