// Products of one row of x with blocks of 32 weights, in any format but f16. Uses the kernel's K, N, WEIGHTS and x, and its
// words and word: of its first or second matrix, four words at a place in units of four, or one of these four.
//! include: weight_formats

// 32 numbers of x, and the sums of their halves: what a block's least weights multiply.
struct Inputs {
    x: array<vec4<f32>, 8>,
    sums: vec2<f32>,
}

fn read_inputs(start: u32) -> Inputs {
    var inputs: Inputs;
    for (var i = 0u; i < 8u; i++) {
        inputs.x[i] = x[start + i];
    }
    inputs.sums.x = dot(inputs.x[0] + inputs.x[1] + inputs.x[2] + inputs.x[3], vec4(1.0));
    inputs.sums.y = dot(inputs.x[4] + inputs.x[5] + inputs.x[6] + inputs.x[7], vec4(1.0));
    return inputs;
}

fn bytes_of(codes: u32) -> vec4<f32> {
    return vec4<f32>((vec4(codes) >> vec4(0u, 8u, 16u, 24u)) & vec4(0xffu));
}

fn nibbles_product(codes: u32, low: vec4<f32>, high: vec4<f32>) -> f32 {
    let of_low = vec4<f32>((vec4(codes) >> vec4(0u, 4u, 8u, 12u)) & vec4(0xfu));
    return dot(of_low, low) + dot(vec4<f32>((vec4(codes) >> vec4(16u, 20u, 24u, 28u)) & vec4(0xfu)), high);
}

// Eight codes, of low bits and of high bits from the lowest bits of each byte on: first those with even places.
fn wide_product(codes: u32, high: u32, width: u32, low: vec4<f32>, last: vec4<f32>) -> f32 {
    let mask = select(0x01010101u, 0x03030303u, width == 2u);
    let even = (codes & 0x0f0f0f0fu) | ((high & mask) << 4u);
    let odd = ((codes >> 4u) & 0x0f0f0f0fu) | (((high >> width) & mask) << 4u);
    return dot(bytes_of(even), vec4(low.xz, last.xz)) + dot(bytes_of(odd), vec4(low.yw, last.yw));
}

// Block b of a row, times 32 numbers; with two levels of scales, `super_word` is that of the block's 256.
fn block_product(is_second: bool, row: u32, b: u32, super_word: u32, inputs: Inputs) -> f32 {
    let start = row * (row_words() / 4u);
    if (WEIGHTS == F32) {
        var sum = 0.0;
        for (var i = 0u; i < 8u; i++) {
            sum += dot(bitcast<vec4<f32>>(words(is_second, start + 8u * b + i)), inputs.x[i]);
        }
        return sum;
    }
    var sums = vec2(0.0); // of the codes of each half
    let high_at = start + number_words() / 4u;
    if (WEIGHTS == Q8) {
        for (var i = 0u; i < 2u; i++) {
            let codes = words(is_second, start + 2u * b + i);
            sums[i] = dot(bytes_of(codes.x), inputs.x[4u * i]) + dot(bytes_of(codes.y), inputs.x[4u * i + 1u])
                + dot(bytes_of(codes.z), inputs.x[4u * i + 2u]) + dot(bytes_of(codes.w), inputs.x[4u * i + 3u]);
        }
    } else if (high_words() == 0u) {
        let codes = words(is_second, start + b);
        sums.x = nibbles_product(codes.x, inputs.x[0], inputs.x[1]) + nibbles_product(codes.y, inputs.x[2], inputs.x[3]);
        sums.y = nibbles_product(codes.z, inputs.x[4], inputs.x[5]) + nibbles_product(codes.w, inputs.x[6], inputs.x[7]);
    } else {
        let width = select(1u, 2u, WEIGHTS == Q6K);
        let codes = words(is_second, start + b);
        var high = vec2(word(is_second, high_at + width * b / 4u, width * b % 4u));
        high.y = high.x >> 4u;
        if (WEIGHTS == Q6K) {
            high.y = word(is_second, high_at + b / 2u, 2u * b % 4u + 1u);
        }
        sums.x = wide_product(codes.x, high.x, width, inputs.x[0], inputs.x[1])
            + wide_product(codes.y, high.x >> (2u * width), width, inputs.x[2], inputs.x[3]);
        sums.y = wide_product(codes.z, high.y, width, inputs.x[4], inputs.x[5])
            + wide_product(codes.w, high.y >> (2u * width), width, inputs.x[6], inputs.x[7]);
    }
    let scales_at = high_at + high_words() / 4u;
    if (WEIGHTS < Q4K) {
        let scale = unpack2x16float(word(is_second, scales_at + b / 4u, b % 4u));
        return (sums.x + sums.y) * scale.x + (inputs.sums.x + inputs.sums.y) * scale.y;
    }
    let scales = scales_of(b, word(is_second, scales_at + b / 8u, b / 2u % 4u), super_word);
    return dot(scales, vec4(sums.x, inputs.sums.x, sums.y, inputs.sums.y));
}

// Of four columns; those beyond the last are the last, those beyond COLUMNS cost nothing.
fn block_products(is_second: bool, column: vec4<u32>, b: u32, super_words: vec4<u32>, inputs: Inputs) -> vec4<f32> {
    let near = min(column, vec4(N - 1u));
    var sums = vec4(block_product(is_second, near.x, b, super_words.x, inputs), 0.0, 0.0, 0.0);
    if (COLUMNS > 1u) {
        sums.y = block_product(is_second, near.y, b, super_words.y, inputs);
    }
    if (COLUMNS > 2u) {
        sums.z = block_product(is_second, near.z, b, super_words.z, inputs);
        sums.w = block_product(is_second, near.w, b, super_words.w, inputs);
    }
    return sums;
}

// Blocks whose scales have one scale, which is loaded once for all of them; where scales have none, those of a row.
fn blocks_of_a_scale() -> u32 {
    return select(K / 32u, 8u, WEIGHTS >= Q4K);
}

fn super_word_at(is_second: bool, row: u32, b: u32) -> u32 {
    let at = (row * row_words() + number_words() + high_words() + scale_words()) / 4u;
    return word(is_second, at + b / 32u, b / 8u % 4u);
}

// The words with the scales of four columns for the blocks from b on; nothing is read where there are none.
fn super_words_at(is_second: bool, column: vec4<u32>, b: u32) -> vec4<u32> {
    if (WEIGHTS < Q4K) {
        return vec4(0u);
    }
    let near = min(column, vec4(N - 1u));
    var found = vec4(super_word_at(is_second, near.x, b), 0u, 0u, 0u);
    if (COLUMNS > 1u) {
        found.y = super_word_at(is_second, near.y, b);
    }
    if (COLUMNS > 2u) {
        found.z = super_word_at(is_second, near.z, b);
        found.w = super_word_at(is_second, near.w, b);
    }
    return found;
}
