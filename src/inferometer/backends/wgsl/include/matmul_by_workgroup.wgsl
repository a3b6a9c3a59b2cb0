// The entry point of matmul_workgroup and matmul_gate_up_workgroup: 64 threads make 64 rows of eight columns for each of 4
// threads across; a thread has 4 rows x 8 columns. Of K, 16 at once lie in workgroup memory as f32: every number is loaded
// from storage and unpacked once a tile. Uses the kernel's K, state and x, and what it includes of operands: COLUMNS,
// four_weights, write_rows.

const TILE_M = 64u;
const ACROSS = 4u; // threads along the columns
const DEPTH = 4u; // vectors of K in workgroup memory
const WIDTH = 32u; // columns of weights: 8 * ACROSS

var<workgroup> rows_of_x: array<vec4<f32>, 256>; // DEPTH * TILE_M
var<workgroup> columns: array<vec4<f32>, 128>; // DEPTH * WIDTH

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let rows = state[1];
    if (group.y * TILE_M >= rows) {
        return;
    }
    let first = group.x * ACROSS * COLUMNS;
    let own_row = thread / ACROSS;
    let own_column = thread % ACROSS;
    let from_x = min(group.y * TILE_M + thread, rows - 1u) * (K / 4u);
    var sums: Sums;
    for (var start = 0u; start < K / 4u; start += DEPTH) {
        workgroupBarrier(); // the last part is read
        for (var d = 0u; d < DEPTH; d++) {
            rows_of_x[d * TILE_M + thread] = select(vec4(0.0), x[from_x + min(start + d, K / 4u - 1u)], start + d < K / 4u);
        }
        for (var d = thread / WIDTH; d < DEPTH; d += 2u) {
            let c = thread % WIDTH;
            columns[d * WIDTH + c] = four_weights(first + own_column, c / ACROSS, ACROSS, min(start + d, K / 4u - 1u));
        }
        workgroupBarrier();
        for (var d = 0u; d < DEPTH; d++) {
            let of_x = mat4x4(
                rows_of_x[d * TILE_M + own_row],
                rows_of_x[d * TILE_M + own_row + 16u],
                rows_of_x[d * TILE_M + own_row + 32u],
                rows_of_x[d * TILE_M + own_row + 48u],
            );
            for (var c = 0u; c < 8u; c++) {
                sums[c] += columns[d * WIDTH + c * ACROSS + own_column] * of_x;
            }
        }
    }
    write_rows(group.y * TILE_M + own_row, 16u, first + own_column, ACROSS, &sums);
}
