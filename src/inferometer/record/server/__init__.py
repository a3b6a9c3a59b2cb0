"""The traces of a running vLLM or SGLang, and counters next to them: `server` is the way in."""
