// Four weights of a row, in any format. Uses the kernel's K and WEIGHTS, and its word: of its first or second matrix, the
// word at a place.
//! include: weight_formats

// The i-th four of a row.
fn four_of_row(is_second: bool, row: u32, i: u32) -> vec4<f32> {
    let start = row * row_words();
    if (WEIGHTS == F32) {
        let at = start + 4u * i;
        return bitcast<vec4<f32>>(vec4(
            word(is_second, at), word(is_second, at + 1u), word(is_second, at + 2u), word(is_second, at + 3u)
        ));
    }
    if (WEIGHTS == F16) {
        let at = start + 2u * i;
        return vec4(unpack2x16float(word(is_second, at)), unpack2x16float(word(is_second, at + 1u)));
    }
    let b = i / 8u;
    let codes = vec4<f32>(four_codes(is_second, start, i));
    let scales_at = start + number_words() + high_words();
    if (WEIGHTS < Q4K) {
        let scale = unpack2x16float(word(is_second, scales_at + b));
        return codes * scale.x + scale.y;
    }
    let scales = scales_of(b, word(is_second, scales_at + b / 2u), word(is_second, scales_at + scale_words() + b / 8u));
    let scale = select(scales.xy, scales.zw, i % 8u >= 4u);
    return codes * scale.x + scale.y;
}

// The i-th four codes of a row that begins at a word.
fn four_codes(is_second: bool, start: u32, i: u32) -> vec4<u32> {
    if (WEIGHTS == Q8) {
        return (vec4(word(is_second, start + i)) >> vec4(0u, 8u, 16u, 24u)) & vec4(0xffu);
    }
    let low = (vec4(word(is_second, start + i / 2u)) >> (vec4(0u, 4u, 8u, 12u) + i % 2u * 16u)) & vec4(0xfu);
    if (high_words() == 0u) {
        return low;
    }
    if (WEIGHTS == Q6K) {
        let high = word(is_second, start + number_words() + i / 4u);
        let at = vec4(0u, 2u, 8u, 10u) + i / 2u % 2u * 4u + i % 2u * 16u;
        return low | (((vec4(high) >> at) & vec4(3u)) << vec4(4u));
    }
    let high = word(is_second, start + number_words() + i / 8u);
    let at = vec4(0u, 1u, 8u, 9u) + i / 2u % 4u * 2u + i % 2u * 16u;
    return low | (((vec4(high) >> at) & vec4(1u)) << vec4(4u));
}
