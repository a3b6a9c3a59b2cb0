"""The traces of a running vLLM or SGLang, and counters beside them: `server` is the way in."""
