//! op: shared_expert_add
//! reference: shared_expert_add
// x += sigmoid(score) * shared, row by row: what the expert that every row passes adds to the others, as much as its score in
// column COLUMN of rows of STRIDE says.
// Grid (ceil(N / THREADS), T): a thread a number. Memory: 8 * N bytes read a row, 4 * N written.
override N: u32;
override STRIDE: u32;
override COLUMN: u32;
override THREADS: u32 = 64u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@group(0) @binding(2) var<storage, read> shared_out: array<f32>;
@group(0) @binding(3) var<storage, read> scores: array<f32>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let column = group.x * THREADS + thread;
    if (column >= N || group.y >= state[1]) {
        return;
    }
    let score = scores[group.y * STRIDE + COLUMN];
    x[group.y * N + column] += shared_out[group.y * N + column] / (1.0 + exp(min(-score, 80.0)));
}
