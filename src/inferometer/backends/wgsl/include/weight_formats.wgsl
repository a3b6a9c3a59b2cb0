// How rows of weights lie in memory, by the kernel's constant WEIGHTS: weight_formats.py says it. Uses K.
const F16 = 0u;
const F32 = 1u;
const Q8 = 2u;
const Q4 = 3u;

// Words of a row: its codes or numbers, and all of it with scales.
fn number_words() -> u32 {
    if (WEIGHTS == F32) {
        return K;
    }
    return select(select(K / 2u, K / 4u, WEIGHTS == Q8), K / 8u, WEIGHTS == Q4);
}

fn row_words() -> u32 {
    return number_words() + select(0u, (K / 32u + 3u) / 4u * 4u, WEIGHTS >= Q8);
}
