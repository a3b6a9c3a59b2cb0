// How keys and values lie in memory, by the kernel's constant CACHE: cache_formats.py says it.
const CACHE_F32 = 1u; // 0: float16
