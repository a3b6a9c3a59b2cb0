"""Run a model: Hugging Face transformers with operators from any backend, and the time of each call path."""
