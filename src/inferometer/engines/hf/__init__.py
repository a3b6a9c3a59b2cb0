"""A Hugging Face transformers model whose operators any backend can run."""
