// How rows of weights lie in memory, by the kernel's constant WEIGHTS: weight_formats.py says it. Uses K.
const F16 = 0u;
const F32 = 1u;
const Q8 = 2u;
const Q4 = 3u;
const Q5 = 4u;
const Q4K = 5u;
const Q5K = 6u;
const Q6K = 7u;

// Words of a row: its numbers or low bits of codes; their high bits; scales of blocks; scales of 256; all of it.
fn number_words() -> u32 {
    if (WEIGHTS == F32) {
        return K;
    }
    if (WEIGHTS == F16) {
        return K / 2u;
    }
    return select(K / 8u, K / 4u, WEIGHTS == Q8);
}

fn high_words() -> u32 {
    if (WEIGHTS == Q6K) {
        return K / 16u;
    }
    return select(0u, (K / 32u + 3u) / 4u * 4u, WEIGHTS == Q5 || WEIGHTS == Q5K);
}

fn scale_words() -> u32 {
    if (WEIGHTS < Q8) {
        return 0u;
    }
    return select((K / 32u + 3u) / 4u * 4u, K / 64u, WEIGHTS >= Q4K);
}

fn row_words() -> u32 {
    return number_words() + high_words() + scale_words() + select(0u, (K / 256u + 3u) / 4u * 4u, WEIGHTS >= Q4K);
}

// Scale and least weight of the first and of the last 16 weights of block b, of its scale word and that of its 256.
fn scales_of(b: u32, word: u32, super_word: u32) -> vec4<f32> {
    if (WEIGHTS < Q4K) {
        return unpack2x16float(word).xyxy;
    }
    let pair = unpack2x16float(super_word);
    let at = b % 2u * 16u;
    if (WEIGHTS == Q6K) {
        let of_halves = bitcast<vec2<i32>>(vec2(word) << (vec2(24u, 16u) - at)) >> vec2(24u); // with their signs
        return pair.xyxy * vec2<f32>(of_halves).xxyy;
    }
    return pair.xyxy * vec2<f32>((vec2(word) >> (vec2(0u, 8u) + at)) & vec2(0xffu)).xyxy;
}
