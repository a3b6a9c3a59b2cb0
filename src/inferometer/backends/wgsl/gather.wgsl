//! op: gather
//! reference: gather
// Rows of the embedding table for the tokens of this pass, times SCALE; marks these tokens in `seen`.
// Grid (T): a workgroup a row, so that a row is read and written in one piece. A table larger than a binding comes in
// chunks of ROWS rows from ROW0, a dispatch each: a token of another chunk is left to that chunk's dispatch.
// Memory: K weights read, K f32 written a row; K is a multiple of 8, of 32 where weights are quantized.
override K: u32; // numbers of a row
override ROW0: u32 = 0u;
override ROWS: u32;
override SCALE: f32 = 1.0;
override WEIGHTS: u32 = 0u; // how they lie: weight_formats.wgsl
override THREADS: u32 = 64u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> tokens: array<u32>;
@group(0) @binding(2) var<storage, read> table: array<u32>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> seen: array<u32>;

//! include: four_weights

fn word(is_second: bool, at: u32) -> u32 {
    return table[at];
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = group.x;
    if (row >= state[1]) {
        return;
    }
    let token = tokens[state[0] + row];
    if (token < ROW0 || token - ROW0 >= ROWS) {
        return;
    }
    if (thread == 0u) {
        seen[token] = 1u;
    }
    for (var i = thread; i < K / 4u; i += THREADS) {
        out[row * (K / 4u) + i] = SCALE * four_of_row(false, token - ROW0, i);
    }
}
