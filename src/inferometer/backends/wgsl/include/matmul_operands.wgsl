// Weights and results of a product with one matrix, for kernels whose threads have eight columns, `apart` from each other.
// Uses the kernel's K, N, HAS_BIAS, OUT0, STRIDE, WEIGHTS, state, weight, bias and out.
//! include: row_sums
//! include: four_weights

const COLUMNS = 8u; // of the result, a thread

fn word(is_second: bool, at: u32) -> u32 {
    return weight[at];
}

// The i-th four of column c of those from `first` on. Columns beyond the last are the last.
fn four_weights(first: u32, c: u32, apart: u32, i: u32) -> vec4<f32> {
    return four_of_row(false, min(first + c * apart, N - 1u), i);
}

// Four rows, `rows_apart` from each other. How many of them there are isn't known to compilers, so that these loops stay
// loops: unrolled, their stores took most of the time that a driver compiled.
fn write_rows(row: u32, rows_apart: u32, first: u32, apart: u32, sums: ptr<function, Sums>) {
    let count = min(4u, (state[1] - min(row, state[1]) + rows_apart - 1u) / rows_apart);
    for (var c = 0u; c < COLUMNS; c++) {
        let column = first + c * apart;
        if (column < N) {
            var value = (*sums)[c];
            if (HAS_BIAS == 1u) {
                value += bias[column];
            }
            for (var r = 0u; r < count; r++) {
                out[(row + r * rows_apart) * STRIDE + OUT0 + column] = value[r];
            }
        }
    }
}
