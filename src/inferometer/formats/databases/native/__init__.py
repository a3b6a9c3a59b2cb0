"""Rows of an SQLite table read from its pages, by a library in C++; whatever is unusual is left to SQLite.

`table` reads. In C++, `pages.h` finds the pages of a table, `rows.h` takes whole numbers out of their records, and
`tables.cpp` has the functions that are called. How the library is built: `formats/native`.
"""
