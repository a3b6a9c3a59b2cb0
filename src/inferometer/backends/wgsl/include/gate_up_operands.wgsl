// Weights and results of a product with gate and up, for kernels whose threads have eight columns, `apart` from each
// other: four of gate and the same four of up. Uses the kernel's K, N, OUT0, STRIDE, ACTIVATION, WEIGHTS, state, gate, up and out.
//! include: row_sums
//! include: four_weights
//! include: activate

const COLUMNS = 4u; // of the result, a thread

fn word(is_second: bool, at: u32) -> u32 {
    if (is_second) {
        return up[at];
    }
    return gate[at];
}

// The i-th four of column c of those from `first` on: first those of gate. Columns beyond the last are the last.
fn four_weights(first: u32, c: u32, apart: u32, i: u32) -> vec4<f32> {
    return four_of_row(c >= COLUMNS, min(first + c % COLUMNS * apart, N - 1u), i);
}

// Four rows, `rows_apart` from each other; why the inner loop's end isn't 4: matmul_operands.wgsl.
fn write_rows(row: u32, rows_apart: u32, first: u32, apart: u32, sums: ptr<function, Sums>) {
    let count = min(4u, (state[1] - min(row, state[1]) + rows_apart - 1u) / rows_apart);
    for (var c = 0u; c < COLUMNS; c++) {
        let column = first + c * apart;
        if (column < N) {
            let gates = (*sums)[c];
            let ups = (*sums)[c + COLUMNS];
            for (var r = 0u; r < count; r++) {
                out[(row + r * rows_apart) * STRIDE + OUT0 + column] = activate(gates[r]) * ups[r];
            }
        }
    }
}
