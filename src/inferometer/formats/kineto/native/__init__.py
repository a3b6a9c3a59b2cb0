"""A library in C++ that decodes the usual events of a Kineto file; whatever is unusual it leaves to Python.

`columns` takes what it hands over, `texts` has it decode sections some ahead, `sections` and `rows` add them to the
tables, `launches` and `packed` are its quick ways for launches alone. In C++, `json.h` and `numbers.h` step through
text, `event.h` reads one event, `tables.h` makes rows of it, `section.h` and `scan.h` read many, `columns.h` and
`arrow.h` hand columns over, and `decoder.cpp` has the functions that are called.

It is built where Inferometer is installed from its source and a C++ compiler is there (`formats/native`). Where it
wasn't, or where `INFEROMETER_NATIVE=0`, Python alone reads, with the same tables, losses and answers.
"""
