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
    let scale = unpack2x16float(word(is_second, start + number_words() + i / 8u));
    if (WEIGHTS == Q8) {
        let codes = (vec4(word(is_second, start + i)) >> vec4(0u, 8u, 16u, 24u)) & vec4(0xffu);
        return vec4<f32>(codes) * scale.x + scale.y;
    }
    let codes = (vec4(word(is_second, start + i / 2u) >> (i % 2u * 16u)) >> vec4(0u, 4u, 8u, 12u)) & vec4(0xfu);
    return vec4<f32>(codes) * scale.x + scale.y;
}
