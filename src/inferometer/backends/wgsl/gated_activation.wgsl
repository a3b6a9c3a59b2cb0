//! op: gated_activation
//! reference: gated_activation
// out = act(gate) * up, row by row, of rows that have gate's N numbers, then up's. ACTIVATION 0: silu, 1: gelu (tanh).
// For feed-forward layers with biases: others have it in the kernel of the two products.
// Grid (ceil(N / THREADS), T): a thread a number. Memory: 8 * N bytes read a row, 4 * N written.
override N: u32;
override ACTIVATION: u32;
override THREADS: u32 = 64u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

//! include: activate

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let column = group.x * THREADS + thread;
    if (column >= N || group.y >= state[1]) {
        return;
    }
    let at = 2u * N * group.y + column;
    out[N * group.y + column] = activate(x[at]) * x[at + N];
}
