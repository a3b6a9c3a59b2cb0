// The entry point of matmul_tile, for any type of weights. Uses the kernel's K, N, HAS_BIAS, OUT0, STRIDE, TILE_M, TILE_N,
// state, x, bias and out; and its weights: eight of them, by their place in units of eight.
struct Eight {
    low: vec4<f32>,
    high: vec4<f32>,
}

@compute @workgroup_size(TILE_N / 8u, TILE_M / 4u)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
    let words = K / 8u;
    let rows = state[1];
    let row = group.y * TILE_M + thread.y * 4u + vec4(0u, 1u, 2u, 3u);
    let column = group.x * TILE_N + thread.x; // the first of eight, TILE_N / 8 apart
    if (row.x >= rows || column >= N) {
        return;
    }
    let from_x = min(row, vec4(rows - 1u)) * (2u * words);
    var sum: array<vec4<f32>, 8>; // of each column, for four rows
    for (var i = 0u; i < words; i++) {
        let x0 = x[from_x.x + 2u * i];
        let x1 = x[from_x.y + 2u * i];
        let x2 = x[from_x.z + 2u * i];
        let x3 = x[from_x.w + 2u * i];
        let y0 = x[from_x.x + 2u * i + 1u];
        let y1 = x[from_x.y + 2u * i + 1u];
        let y2 = x[from_x.z + 2u * i + 1u];
        let y3 = x[from_x.w + 2u * i + 1u];
        for (var c = 0u; c < 8u; c++) {
            let eight = weights(min(column + c * (TILE_N / 8u), N - 1u) * words + i);
            let low = eight.low;
            let high = eight.high;
            sum[c] += vec4(dot(low, x0), dot(low, x1), dot(low, x2), dot(low, x3))
                + vec4(dot(high, y0), dot(high, y1), dot(high, y2), dot(high, y3));
        }
    }
    for (var c = 0u; c < 8u; c++) {
        let at = column + c * (TILE_N / 8u);
        for (var r = 0u; r < 4u; r++) {
            if (row[r] < rows && at < N) {
                var value = sum[c][r];
                if (HAS_BIAS == 1u) {
                    value += bias[at];
                }
                out[row[r] * STRIDE + OUT0 + at] = value;
            }
        }
    }
}
