// The entry point of matmul_subgroups and matmul_gate_up_subgroups. A thread makes 16 rows x 8 columns in registers. Four
// lanes load a row of x each, and all lanes take it from there. Uses the kernel's K, THREADS, state and x, and what it
// includes of operands: COLUMNS, four_weights, write_rows.
// Four of K a turn: with eight, drivers take twice as long to compile what they unroll, for no more speed.
//! include: rows_by_subgroup

const TILE_M = 16u;

// Four rows times the weights of all columns.
fn add_products(sums: ptr<function, Sums>, weights: ptr<function, array<vec4<f32>, 8>>, own: vec4<f32>) {
    let rows = shared_rows(own);
    for (var c = 0u; c < 8u; c++) {
        (*sums)[c] += (*weights)[c] * rows;
    }
}

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let rows = state[1];
    let row = group.y * TILE_M;
    if (row >= rows) {
        return;
    }
    let first = group.x * THREADS * COLUMNS + thread;
    let from_x = min(row + lane % 4u + 4u * vec4(0u, 1u, 2u, 3u), vec4(rows - 1u)) * (K / 4u);
    var of_0: Sums;
    var of_1: Sums;
    var of_2: Sums;
    var of_3: Sums;
    for (var i = 0u; i < K / 4u; i++) {
        var weights: array<vec4<f32>, 8>;
        for (var c = 0u; c < 8u; c++) {
            weights[c] = four_weights(first, c, THREADS, i);
        }
        add_products(&of_0, &weights, x[from_x.x + i]);
        add_products(&of_1, &weights, x[from_x.y + i]);
        add_products(&of_2, &weights, x[from_x.z + i]);
        add_products(&of_3, &weights, x[from_x.w + i]);
    }
    write_rows(row, 1u, first, THREADS, &of_0);
    write_rows(row + 4u, 1u, first, THREADS, &of_1);
    write_rows(row + 8u, 1u, first, THREADS, &of_2);
    write_rows(row + 12u, 1u, first, THREADS, &of_3);
}
