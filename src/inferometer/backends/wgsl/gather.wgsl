//! op: gather
//! reference: gather
// Rows of the embedding table for the tokens of this pass, times SCALE; marks these tokens in `seen`.
// Grid (T): a workgroup a row, so that a row is read and written in one piece. A table larger than a binding comes in
// chunks of ROWS rows from ROW0, a dispatch each: a token of another chunk is left to that chunk's dispatch.
// Memory: D f16 read, D f32 written a row; D is a multiple of 8.
override D: u32;
override ROW0: u32 = 0u;
override ROWS: u32;
override SCALE: f32 = 1.0;
override THREADS: u32 = 64u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> tokens: array<u32>;
@group(0) @binding(2) var<storage, read> table: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> seen: array<u32>;

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
    let words = D / 8u;
    for (var i = thread; i < words; i += THREADS) {
        let packed = table[(token - ROW0) * words + i];
        let at = 2u * (row * words + i);
        out[at] = SCALE * vec4(unpack2x16float(packed.x), unpack2x16float(packed.y));
        out[at + 1u] = SCALE * vec4(unpack2x16float(packed.z), unpack2x16float(packed.w));
    }
}
