"""GGUF, the file in which llama.cpp and what builds on it keep a model: weights, configuration and tokenizer in one.

`header.py` reads what a file says of itself, `tensor_types.py` knows its blocks of numbers and widens them,
`block_codes.py` takes them apart into codes and scales,
`families.py` makes transformers' names and `config.json` of it, `model.py` has both together with rows of weights, as
they lie or as float32. `tokenizer.py` makes a `tokenizer.json` of the metadata.

The `gguf` library widens the blocks. Its own reader isn't used: it makes an array per token, so that the header of a
model with 262,144 of them takes 40 s (here: 0.3 s), and it believes every count of a file.
"""
