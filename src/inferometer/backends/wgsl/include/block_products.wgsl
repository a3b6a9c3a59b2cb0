// Products of one row of x with blocks of 32 weights, in any format but f16. Uses the kernel's K, N, WEIGHTS and x, and its
// words: of its first or second matrix, four words at a place in units of four.
//! include: weight_formats

// 32 numbers of x, and their sum: what a block's least weight multiplies.
struct Inputs {
    x: array<vec4<f32>, 8>,
    sum: f32,
}

fn read_inputs(start: u32) -> Inputs {
    var inputs: Inputs;
    var sums = vec4(0.0);
    for (var i = 0u; i < 8u; i++) {
        inputs.x[i] = x[start + i];
        sums += inputs.x[i];
    }
    inputs.sum = dot(sums, vec4(1.0));
    return inputs;
}

fn bytes_of(codes: u32) -> vec4<f32> {
    return vec4<f32>((vec4(codes) >> vec4(0u, 8u, 16u, 24u)) & vec4(0xffu));
}

fn nibbles_product(codes: u32, low: vec4<f32>, high: vec4<f32>) -> f32 {
    let of_low = vec4<f32>((vec4(codes) >> vec4(0u, 4u, 8u, 12u)) & vec4(0xfu));
    return dot(of_low, low) + dot(vec4<f32>((vec4(codes) >> vec4(16u, 20u, 24u, 28u)) & vec4(0xfu)), high);
}

// Block b of a row, times 32 numbers.
fn block_product(is_second: bool, row: u32, b: u32, inputs: Inputs) -> f32 {
    let start = row * (row_words() / 4u);
    var sum = 0.0;
    if (WEIGHTS == F32) {
        for (var i = 0u; i < 8u; i++) {
            sum += dot(bitcast<vec4<f32>>(words(is_second, start + 8u * b + i)), inputs.x[i]);
        }
        return sum;
    }
    if (WEIGHTS == Q8) {
        for (var i = 0u; i < 2u; i++) {
            let codes = words(is_second, start + 2u * b + i);
            sum += dot(bytes_of(codes.x), inputs.x[4u * i]) + dot(bytes_of(codes.y), inputs.x[4u * i + 1u])
                + dot(bytes_of(codes.z), inputs.x[4u * i + 2u]) + dot(bytes_of(codes.w), inputs.x[4u * i + 3u]);
        }
    } else {
        let codes = words(is_second, start + b);
        sum = nibbles_product(codes.x, inputs.x[0], inputs.x[1]) + nibbles_product(codes.y, inputs.x[2], inputs.x[3])
            + nibbles_product(codes.z, inputs.x[4], inputs.x[5]) + nibbles_product(codes.w, inputs.x[6], inputs.x[7]);
    }
    let scale = unpack2x16float(scale_word(is_second, start + number_words() / 4u + b / 4u, b % 4u));
    return sum * scale.x + inputs.sum * scale.y;
}

// Of four columns; those beyond the last are the last, those beyond COLUMNS cost nothing.
fn block_products(is_second: bool, column: vec4<u32>, b: u32, inputs: Inputs) -> vec4<f32> {
    let near = min(column, vec4(N - 1u));
    var sums = vec4(block_product(is_second, near.x, b, inputs), 0.0, 0.0, 0.0);
    if (COLUMNS > 1u) {
        sums.y = block_product(is_second, near.y, b, inputs);
    }
    if (COLUMNS > 2u) {
        sums.z = block_product(is_second, near.z, b, inputs);
        sums.w = block_product(is_second, near.w, b, inputs);
    }
    return sums;
}
